"""`mainspring run list` and `run show`: runs whatever their state, and one of them with all that happened to it."""

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.bulk import Filters
from mainspring.cli.command import Invocation, command
from mainspring.cli.tables import COLOURS, error_line, lines_of, traceback_lines
from mainspring.cli.text import as_instant, as_json, as_span, safe
from mainspring.errors import InvalidInput
from mainspring.model.fan_out import summary
from mainspring.model.filter import RunFilter
from mainspring.model.lifecycle import Outcome, State
from mainspring.model.line import Delivery
from mainspring.model.run import Attempt, Run

CHILDREN_SHOWN = 20


@command("list")
async def list_runs(
    *,
    filters: Filters = Filters(),  # noqa: B008  frozen
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on after the page that ended with this cursor.")] = None,
    invocation: Invocation,
) -> None:
    """List runs, newest first.

    Newest first: by when a run ended or, if it has not, by when it was submitted.

    Examples:
      mainspring run list --job report --state dead
      mainspring run list --queue mail --since 2h --limit 20
      mainspring run list --error "connection refused" --since 1d
      mainspring run list --tag monthly --state scheduled -o json
    """
    await print_page(invocation, filters.wanted(invocation.now), limit, cursor)


async def print_page(invocation: Invocation, wanted: RunFilter, limit: int, cursor: str | None) -> None:
    async with invocation.client() as client:
        page = await client.runs.page(wanted, limit=limit, cursor=cursor)
    if invocation.wants_json:
        invocation.print_json(page)
    elif page.runs:
        invocation.print_lines(lines_of(page.runs, invocation.now, invocation.room))
        if page.cursor is not None:
            invocation.say(f"there are more: the same with --cursor {page.cursor}")
    else:
        invocation.print("No runs match.")


@command("show")
async def show(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    attempt: Annotated[int | None, Parameter(help="Show the traceback of the attempt with this number.")] = None,
    invocation: Invocation,
) -> None:
    """Show a run: its state, arguments, attempts and timeline.

    Unless it succeeded, the traceback of the last attempt that left one is shown
    as well. -o json has all of them.

    Examples:
      mainspring run show ID
      mainspring run show ID --attempt 1
    """
    await print_run(invocation, run_id, attempt)


async def print_run(invocation: Invocation, run_id: str, attempt: int | None) -> None:
    async with invocation.client() as client:
        run = await client.runs.find(run_id)
    chosen = _chosen(run, attempt)
    if invocation.wants_json:
        invocation.print_json(run)
        return
    invocation.print(_facts(run))
    if run.attempts:
        invocation.print("", _attempts(run))
    if run.children:
        invocation.print("", _children(run))
    for each in chosen:
        invocation.print("", *_traceback(each))
    invocation.print("", _timeline(run))


def _chosen(run: Run, number: int | None) -> list[Attempt]:
    """Whose traceback is to be shown: the attempt that was asked for, else the last failure that was not made good."""
    if number is None:
        failed = [each for each in run.attempts if traceback_lines(each.error)]
        return [] if run.state is State.SUCCEEDED else failed[-1:]
    found = [each for each in run.attempts if each.number == number]
    if not found:
        numbers = sorted({each.number for each in run.attempts if each.number})
        raise InvalidInput(
            f"--attempt is {number}; it must be the number of an attempt that is over.",
            code="attempt-not-found",
            hint=f"Run {run.id} has {', '.join(map(str, numbers)) or 'none yet'}.",
            field="attempt",
            value=number,
        )
    return found


def _traceback(attempt: Attempt) -> Iterator[Text | str]:
    lines = traceback_lines(attempt.error)
    heading = f"attempt {attempt.number} {attempt.outcome}"
    yield Text(f"{heading}:" if lines else f"{heading}; it left no traceback", style="dim")
    for line in lines:
        yield f"  {line}"  # as a string it is not wrapped, and can be copied


def _facts(run: Run) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in _lines_about(run):
        table.add_row(name, value if isinstance(value, Text) else Text(safe(value)))
    return table


def _lines_about(run: Run) -> Iterator[tuple[str, str | Text]]:
    yield "run", str(run.id)
    yield "job", f"{run.job} (version {run.job_version})"
    yield "state", _state_of(run)
    if run.progress is not None:
        yield "progress", f"{run.progress.fraction:.0%} {run.progress.message} (attempt {run.progress.attempt})"
    yield "queue", f"{run.queue}, priority {run.priority}"
    if run.labels:
        yield "labels", ", ".join(run.labels)
    if run.delivery is not Delivery.AT_LEAST_ONCE:
        yield "delivery", run.delivery.value
    yield "arguments", as_json(run.payload, indent=0)
    if run.state is State.SUCCEEDED and run.attempts:
        yield "result", as_json(run.attempts[-1].result, indent=0)
    yield "due", as_instant(run.due_at)
    if run.expires_at is not None:
        yield "expires", as_instant(run.expires_at)
    for name, value in run.overrides.items():
        yield name.replace("_", " "), as_json(value, indent=0)
    yield "submitted", f"{as_instant(run.submitted_at)} by {run.submitted_by or 'unknown'}"
    if run.idempotency_key is not None:
        yield "key", run.idempotency_key
    if run.unique_key is not None:
        yield "unique key", run.unique_key
    if run.tags:
        yield "tags", ", ".join(run.tags)
    if run.worker_id is not None:
        yield "worker", str(run.worker_id)
    if run.rerun_of is not None:
        yield "rerun of", str(run.rerun_of)
    if run.triggered_by is not None:
        yield "triggered by", str(run.triggered_by)
    if run.child_of is not None:
        yield "child of", str(run.child_of)
    if run.children:
        yield "children", summary(run.children).partition(": ")[2]


def _state_of(run: Run) -> Text:
    text = Text(run.state.value, style=f"bold {COLOURS.get(run.state, '')}")
    if run.held_for is not None:
        text.append(f" ({safe(run.held_for)})", style="not bold")
    if run.is_cancelling:
        text.append(" (asked to stop)", style="not bold")
    if run.lacks is not None:
        text.append(f" ({safe(run.lacks)})", style="not bold")
    return text


def _attempts(run: Run) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("attempt", "outcome", "waited", "took", "error"):
        table.add_column(heading, justify="right" if heading in ("attempt", "waited", "took") else "left")
    for each in run.attempts:
        style = "green" if each.outcome is Outcome.SUCCEEDED else "red" if each.outcome is Outcome.FAILED else "yellow"
        waited = _between(each, "ready_at", "started_at")
        took = _between(each, "started_at", "finished_at")
        table.add_row(str(each.number or "–"), Text(each.outcome.value, style=style), waited, took, _error_of(each))
    return table


def _children(run: Run) -> Table:
    """Those that have not succeeded first: they are what it waits for, or why it failed."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("child", "run", "state"):
        table.add_column(heading)
    ordered = sorted(run.children, key=lambda each: each.state is State.SUCCEEDED)
    for each in ordered[:CHILDREN_SHOWN]:
        state = "forgotten" if each.state is None else each.state.value
        style = "" if each.state is None else COLOURS.get(each.state, "")
        table.add_row(safe(each.name), str(each.run_id), Text(state, style=style))
    if len(ordered) > CHILDREN_SHOWN:
        table.add_row("…", f"and {len(ordered) - CHILDREN_SHOWN:,} more: -o json has all of them", "")
    return table


def _between(attempt: Attempt, begin: str, end: str) -> str:
    began_at, ended_at = getattr(attempt, begin), getattr(attempt, end)
    if began_at is None or ended_at is None:
        return "–"
    return as_span(max(0.0, (ended_at - began_at).total_seconds()))  # ready_at is the database's clock, not the host's


def _error_of(attempt: Attempt) -> Text:
    if attempt.error is None:
        return Text("")
    return Text(error_line(attempt.error, 160))


def _timeline(run: Run) -> Table:
    table = Table.grid(padding=(0, 2))
    for style in ("dim", "dim", "", "dim"):
        table.add_column(style=style)
    table.columns[1].justify = "right"
    for each in run.transitions:
        since = (each.at - run.submitted_at).total_seconds()
        table.add_row(as_instant(each.at), f"+{as_span(max(0.0, since))}", safe(each.what), safe(each.detail, 120))
    return table
