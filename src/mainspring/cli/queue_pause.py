"""`mainspring queue pause`: claim nothing more from a queue."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import InSession, command


@command("pause")
async def pause(
    queue: Annotated[str, Parameter(help="The queue's name.")],
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    session: InSession,
) -> None:
    """Stop claiming from a queue.

    What is being executed goes on; what waits, waits. Runs are still accepted.

    Example:
      mainspring queue pause mail --reason "the mail server is down"
    """
    async with session.client() as client:
        is_new = await client.queues.pause(queue, reason=reason)
    if session.wants_json:
        session.print_json({"queue": queue, "paused": True, "changed": is_new})
    else:
        session.print("paused" if is_new else "it was paused before")
