"""`mainspring job`: the jobs there are, what they say about themselves, and how many of their runs are where."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import COLOURS, Column, fitted, lines_of
from mainspring.cli.text import as_instant, as_json, safe
from mainspring.control.jobs import JobSummary
from mainspring.model.filter import RunFilter
from mainspring.model.lifecycle import State
from mainspring.model.listing import checked_limit

STATES = (State.READY, State.RUNNING, State.SCHEDULED, State.HELD, State.DEAD)
COLUMNS = (
    Column("job", least=20),
    Column("version", is_number=True, leave_out=2),
    Column("queue", least=12, leave_out=1),
    *(Column(state.value, is_number=True) for state in STATES),
)


@command("list")
async def list_jobs(
    *,
    after: Annotated[str, Parameter(help="Only jobs whose names come after this one.", show_default=False)] = "",
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 100,
    invocation: Invocation,
) -> None:
    """List jobs by name.

    Examples:
      mainspring job list
      mainspring job list --after report --limit 500 -o json
    """
    async with invocation.client() as client:
        jobs = await client.jobs.list(after=after, limit=limit)
    if invocation.wants_json:
        invocation.print_json({"jobs": jobs})
        return
    if not jobs:
        invocation.print("No jobs. They appear when an application that defines them starts a worker or submits a run.")
        return
    rows = [_row(job) for job in jobs]
    invocation.print_lines(fitted(COLUMNS, rows, invocation.room))


def _row(job: JobSummary) -> list[Text]:
    name, version, queue = Text(safe(job.name)), Text(str(job.version)), Text(safe(job.queue))
    return [name, version, queue, *(count_of(job, state) for state in STATES)]


def count_of(job: JobSummary, state: State) -> Text:
    count = job.counts[state]
    more = "+" if job.is_more and count >= 1_000 else ""
    return Text(f"{count:,}{more}", style="dim" if count == 0 else COLOURS.get(state, ""))


@command("show")
async def show(
    name: Annotated[str, Parameter(name="name", help="The job's name.")],
    /,
    *,
    runs: Annotated[int, Parameter(help="How many of its latest runs to show.")] = 10,
    invocation: Invocation,
) -> None:
    """Show a job: its version, policies, counts and latest runs.

    Example:
      mainspring job show report
    """
    async with invocation.client() as client:
        job = await client.jobs.find(name)
        page = await client.runs.page(RunFilter(jobs=(name,)), limit=checked_limit(runs, "runs"))
    if invocation.wants_json:
        invocation.print_json({"job": job, "runs": page.runs})
        return
    invocation.print(_facts(job))
    if page.runs:
        invocation.print("")
        invocation.print_lines(lines_of(page.runs, invocation.now, invocation.room))


def _facts(job: JobSummary) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _lines_about(job):
        table.add_row(name, value)
    return table


def _lines_about(job: JobSummary) -> Iterator[tuple[str, Text]]:
    yield "job", Text(safe(job.name))
    yield "version", Text(f"{job.version}, since {as_instant(job.changed_at)}")
    yield "created", Text(as_instant(job.created_at))
    for name, value in job.definition.items():
        if name != "name" and value is not None:
            yield safe(name, 30), Text(safe(value if isinstance(value, str) else as_json(value, indent=0), 300))
    counts = Text()
    for state in STATES:
        counts.append_text(count_of(job, state)).append(f" {state}  ")
    yield "runs", counts
