"""`mainspring job list`: the jobs there are, and how many of their runs are where."""

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.command import InSession, command
from mainspring.cli.run_table import COLOURS, plain_table
from mainspring.cli.text import safe
from mainspring.control.jobs import JobSummary
from mainspring.model.lifecycle import State

STATES = (State.READY, State.RUNNING, State.SCHEDULED, State.HELD, State.DEAD)


@command("list")
async def list_jobs(
    *,
    after: Annotated[str, Parameter(help="Only jobs whose names come after this one.", show_default=False)] = "",
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 100,
    session: InSession,
) -> None:
    """List jobs by name.

    Examples:
      mainspring job list
      mainspring job list --after report --limit 500 -o json
    """
    async with session.client() as client:
        jobs = await (await client.services()).jobs.by_name(after=after, limit=limit)
    if session.wants_json:
        session.print_json({"jobs": jobs})
        return
    if not jobs:
        session.print("No jobs. They appear when an application that defines them starts a worker or submits a run.")
        return
    table = plain_table("job", "version", "queue", *STATES)
    for column in table.columns[3:]:
        column.justify = "right"
    for job in jobs:
        name = Text(safe(job.name), overflow="fold")
        table.add_row(name, str(job.version), Text(safe(job.queue, 40)), *(count_of(job, state) for state in STATES))
    session.print(table)


def count_of(job: JobSummary, state: State) -> Text:
    count = job.counts[state]
    more = "+" if job.is_more and count >= 1_000 else ""
    return Text(f"{count:,}{more}", style="dim" if count == 0 else COLOURS.get(state, ""))
