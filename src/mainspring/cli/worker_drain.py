"""`mainspring worker drain`: ask workers to finish what they run and end."""

from typing import Annotated

from cyclopts import Parameter

from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import InSession, command
from mainspring.cli.text import safe
from mainspring.errors import InvalidInput, WorkerNotFound


@command("drain")
async def drain(
    worker_id: Annotated[str | None, Parameter(name="id", help="The worker's id.")] = None,
    /,
    *,
    host: Annotated[str | None, Parameter(help="All live workers of this host instead.")] = None,
    reason: Annotated[str, Parameter(help="Why; kept in the audit.")] = "",
    session: InSession,
) -> None:
    """Ask workers to finish and end.

    The worker's supervisor hears of it at its next beat, lets it finish within its
    grace, and does not replace it. A supervisor without workers ends.

    Examples:
      mainspring worker drain ID
      mainspring worker drain --host node-7 --reason "kernel upgrade"
    """
    if (worker_id is None) == (host is None):
        raise InvalidInput("Name one worker, or a host with --host.", code="worker-or-host", field="id")
    async with session.client() as client:
        ids = [worker_id] if worker_id is not None else await _workers_of(client, host)
        for each in ids:
            await client.workers.drain(each, reason=reason)
    if session.wants_json:
        session.print_json({"draining": ids})
    else:
        session.print(*(f"asked {safe(each)} to drain" for each in ids))


async def _workers_of(client: Mainspring, host: str | None) -> list[str]:
    rows = await (await client.services()).workers.list(ended_within=0)
    ids = [str(row["id"]) for row in rows if row["host"] == host and row["state"] == "live"]
    if not ids:
        raise WorkerNotFound(
            f"There is no live worker on host {safe(host, 60)}.",
            hint="`mainspring worker list` shows those there are.",
            field="host",
        )
    return ids
