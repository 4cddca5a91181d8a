"""`mainspring queue resume`: claim from a paused queue again."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import InSession, command


@command("resume")
async def resume(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    session: InSession,
) -> None:
    """Claim from a queue again.

    Example:
      mainspring queue resume mail
    """
    async with session.client() as client:
        is_new = await client.queues.resume(queue, reason=reason)
    if session.wants_json:
        session.print_json({"queue": queue, "paused": False, "changed": is_new})
    else:
        session.print("resumed" if is_new else "it was not paused")
