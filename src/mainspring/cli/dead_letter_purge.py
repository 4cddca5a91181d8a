"""`mainspring dead-letter purge`: end dead runs for good."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.bulk import Many, check_choice, operate
from mainspring.cli.command import InSession, command
from mainspring.cli.filters import DeadFilters
from mainspring.cli.session import Session
from mainspring.control.dead import Moved
from mainspring.model.operation import OperationKind


@command("purge")
async def purge(
    *run_ids: Annotated[str, Parameter(name="ids", help="The runs' ids.")],
    filters: DeadFilters = DeadFilters(),  # noqa: B008  frozen
    many: Many = Many(),  # noqa: B008  frozen
    session: InSession,
) -> int:
    """End dead runs for good.

    A purged run has ended as cancelled. Its history stays, with its arguments,
    and it can be run again with: mainspring run retry ID

    Examples:
      mainspring dead-letter purge ID --reason "paid in cash"
      mainspring dead-letter purge --job report --until 30d --yes
    """
    check_choice(run_ids, filters, many)
    async with session.client() as client:
        if not run_ids:
            return await operate(session, client, OperationKind.PURGE, filters, many)
        dead = (await client.services()).dead
        moved = await dead.purge(run_ids, reason=many.reason, actor=client.submitted_by)
        if len(run_ids) == 1:
            await dead.raise_unless_moved(moved, "purged")
    return print_moved(session, moved, "purged")


def print_moved(session: Session, moved: Moved, verb: str) -> int:
    """What was done to runs named by their ids; exits with 1 if some of them were not dead."""
    if session.wants_json:
        session.print_json(moved._asdict())
    else:
        session.print(f"{len(moved.done):,} {verb}")
        for run_id in moved.skipped:
            session.print(f"skipped, not dead: {run_id}")
    return 1 if moved.skipped else 0
