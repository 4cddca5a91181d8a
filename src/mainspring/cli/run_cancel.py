"""`mainspring run cancel`: end a waiting run, ask a running one to stop."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import InSession, command
from mainspring.model.lifecycle import State

NOTES = """\
A run that is being executed is told to stop and ends as cancelled when its
handler does.

Example:
  mainspring run cancel ID --reason "it was sent by hand" -o json"""

commands = command("cancel", NOTES)


@commands.default
async def cancel(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept with the run.")] = "",
    session: InSession,
) -> None:
    """End a waiting run; ask a running one to stop."""
    async with session.client() as client:
        state = await client.cancel(run_id, reason=reason)
    if session.wants_json:
        session.print_json({"id": run_id, "state": state})
    elif state is State.CANCELLED:
        session.print("cancelled")
    else:
        session.print("asked to stop; it ends when its handler does")
