"""`mainspring run cancel`: end waiting runs, ask running ones to stop."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.mainspring import Mainspring
from mainspring.cli.bulk import Many, check_choice, operate
from mainspring.cli.command import InSession, command
from mainspring.cli.filters import Filters
from mainspring.cli.session import Session
from mainspring.model.lifecycle import State
from mainspring.model.operation import OperationKind


@command("cancel")
async def cancel(
    run_id: Annotated[str | None, Parameter(name="id", help="The run's id.")] = None,
    /,
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    session: InSession,
) -> int:
    """End a waiting run, or many; ask those that are running to stop.

    A run that is being executed is told to stop and ends as cancelled when its
    handler does. By a filter, many are cancelled in one operation that can be
    resumed if it is cut off.

    Examples:
      mainspring run cancel ID --reason "it was sent by hand" -o json
      mainspring run cancel --job report --state scheduled --yes
    """
    check_choice(() if run_id is None else (run_id,), filters, many)
    async with session.client() as client:
        if run_id is None:
            return await operate(session, client, OperationKind.CANCEL, filters, many)
        await _cancel_one(session, client, run_id, many.reason)
    return 0


async def _cancel_one(session: Session, client: Mainspring, run_id: str, reason: str) -> None:
    state = await client.cancel(run_id, reason=reason)
    if session.wants_json:
        session.print_json({"id": run_id, "state": state})
    elif state is State.CANCELLED:
        session.print("cancelled")
    else:
        session.print("asked to stop; it ends when its handler does")
