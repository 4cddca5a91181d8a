"""`mainspring operation resume`: go on with an operation that was cut off."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.bulk import work_off
from mainspring.cli.command import InSession, command


@command("resume")
async def resume(
    operation_id: Annotated[str, Parameter(name="id", help="The operation's id.")],
    /,
    *,
    session: InSession,
) -> int:
    """Go on with an operation that was cut off.

    It goes on after its last batch; no run is treated twice, even if someone else
    works on the same operation.

    Example:
      mainspring operation resume ID
    """
    async with session.client() as client:
        return await work_off(session, client, operation_id)
