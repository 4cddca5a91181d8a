"""`mainspring schedule show`: one schedule with all there is to say about it. And how others show when it fires."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.schedule_history import overdue_since, print_records
from mainspring.cli.schedules import as_local
from mainspring.cli.tables import until
from mainspring.cli.text import as_instant, as_json, as_span, counted, safe
from mainspring.model.listing import checked_limit
from mainspring.model.scheduling import ScheduleState, ScheduleSummary
from mainspring.schedule.deciding import OverlapPolicy
from mainspring.schedule.preview import Entry, Preview
from mainspring.schedule.zones import zone_named

COMING = 5  # so many instants are shown
STATE_COLOURS = {ScheduleState.ACTIVE: "green", ScheduleState.PAUSED: "yellow", ScheduleState.DONE: "dim"}

OVERLAPS: dict[str, str] = {
    OverlapPolicy.ALLOW: "allow: runs may execute side by side",
    OverlapPolicy.SKIP: "skip: nothing fires while an earlier run has not ended",
    OverlapPolicy.BUFFER_ONE: "buffer_one: one waits until the earlier run has ended, further ones are skipped",
    OverlapPolicy.BUFFER_ALL: "buffer_all: each waits until the earlier ones have ended",
    OverlapPolicy.CANCEL_OTHER: "cancel_other: an earlier run is cancelled",
}

Facts = Iterable[tuple[str, str | Text]]


@command("show")
async def show(
    name: Annotated[str, Parameter(help="The schedule's name.")],
    /,
    *,
    occurrences: Annotated[int, Parameter(help="How many of its latest occurrences to show.")] = 5,
    invocation: Invocation,
) -> None:
    """Show a schedule: what it means, what comes next, what it makes, what happened.

    Example:
      mainspring schedule show nightly
    """
    async with invocation.client() as client:
        schedule = await client.schedules.find(name)
        coming = await client.schedules.preview(name, count=COMING)
        records = await client.schedules.history(name, limit=checked_limit(occurrences, "occurrences"))
    is_coming = fires_again(schedule)
    if invocation.wants_json:
        next_ = next_documents(coming) if is_coming else []
        invocation.print_json({"schedule": schedule, "next": next_, "occurrences": records})
        return
    invocation.print(facts(_lines_about(schedule, coming if is_coming else None, invocation.now)), "")
    overdue = overdue_since(schedule, invocation.now)
    print_records(invocation, schedule.zone, overdue, records, "No occurrences yet.")


def fires_again(schedule: ScheduleSummary) -> bool:
    """Whether it goes on by itself: not while it is paused for good, or over."""
    is_paused_for_good = schedule.state is ScheduleState.PAUSED and schedule.paused_until is None
    return schedule.state is not ScheduleState.DONE and not is_paused_for_good


def facts(lines: Facts) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines:
        table.add_row(name, value if isinstance(value, Text) else Text(safe(value)))
    return table


def _lines_about(schedule: ScheduleSummary, coming: Preview | None, now: datetime) -> Facts:
    yield "schedule", Text(safe(schedule.name), style="bold")
    yield "state", _state_of(schedule)
    yield "when", schedule.when
    yield "in words", schedule.words
    yield "zone", schedule.zone
    yield from coming_lines(coming, now) if coming is not None else [("next", "none, as it is")]
    yield "catch-up", _catch_up(schedule)
    yield "overlap", OVERLAPS.get(schedule.overlap, schedule.overlap)
    if schedule.pause_after_failures is not None:
        yield "pauses", f"after {counted(schedule.pause_after_failures, 'run')} in a row without success"
    yield "job", schedule.job
    yield "arguments", as_json(schedule.payload, indent=0)
    for name, value in _flat(schedule.options):
        yield name.replace("_", " "), value if isinstance(value, str) else as_json(value, indent=0)
    if schedule.tags:
        yield "tags", ", ".join(schedule.tags)
    source = ", declared in code" if schedule.is_declared else ""
    yield "version", f"{schedule.version}, since {as_instant(schedule.changed_at)} by {schedule.changed_by}{source}"
    yield "created", f"{as_instant(schedule.created_at)} by {schedule.created_by}"


def _state_of(schedule: ScheduleSummary) -> Text:
    told = Text(schedule.state.value, style=STATE_COLOURS[schedule.state])
    if schedule.state is ScheduleState.PAUSED:
        told.append(f" by {safe(schedule.paused_by)} {as_instant(schedule.paused_at)}", style="default")
        if schedule.paused_until is not None:
            told.append(f", until {as_local(schedule.paused_until.astimezone(zone_named(schedule.zone)))}")
        if schedule.pause_reason:
            told.append(f": {safe(schedule.pause_reason)}")
    return told


def _catch_up(schedule: ScheduleSummary) -> str:
    if schedule.catch_up == "none":
        return "none: what is missed stays missed"
    return f"{schedule.catch_up}, of what was missed in the last {as_span(schedule.catch_up_window.total_seconds())}"


def _flat(options: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Options, with the policies among them."""
    for name, value in options.items():
        if name == "overrides":
            yield from value.items()
        else:
            yield name, value


# ── what comes ──────────────────────────────────────────────────────────────────────────────────────────────────


def coming_lines(coming: Preview, now: datetime) -> Iterator[tuple[str, Text]]:
    """The next instants, in the schedule's zone."""
    heading = "next"
    with_seconds = any(entry.nominal_at.second for entry in coming.entries)
    for entry in coming.entries:
        yield heading, _coming(entry, now, seconds=with_seconds)
        heading = ""
    for remark in coming.remarks:
        yield heading, Text(safe(remark), style="yellow")
        heading = ""


def _coming(entry: Entry, now: datetime, *, seconds: bool) -> Text:
    local = as_local(entry.local_at, seconds=seconds)
    told = Text(f"{local}, {until(entry.due_at, now)}") if entry.fires else Text(f"({local})", style="dim")
    if entry.notes:
        told.append(f" – {safe('; '.join(entry.notes))}", style="yellow")
    return told


def next_documents(coming: Preview) -> list[dict[str, Any]]:
    return [
        {"nominal_at": entry.nominal_at, "due_at": entry.due_at, "local": entry.local_at.isoformat()}
        for entry in coming.entries
        if entry.fires
    ]
