"""`mainspring schedule diff`: what a change of a schedule changes."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.schedules import (
    CalendarFiles,
    From,
    JobId,
    Zone,
    as_local,
    as_stamp,
    moment,
    read_calendars,
    read_schedule,
    until,
)
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_span, counted, safe
from mainspring.schedule.diff import Change, Diff, diff
from mainspring.schedule.schedule import Schedule

INDENT = len("vanished  ")
COLOURS = {"appeared": "green", "vanished": "red", "moved": "yellow"}


@command("diff")
def show(
    old: Annotated[str, Parameter(help="The schedule as it is.")],
    new: Annotated[str, Parameter(help="The schedule as it shall be.")],
    /,
    *,
    zone: Zone = "UTC",
    from_: From = None,
    within: Annotated[str, Parameter(help="How far to compare.")] = "30d",
    count: Annotated[int, Parameter(help="How many changes to show.")] = 20,
    calendar: CalendarFiles = (),
    job: JobId = "",
    invocation: Invocation,
) -> None:
    """Compare two versions of a schedule.

    An instant that vanishes and one that appears on the same day are a move.

    Examples:
      mainspring schedule diff '0 9 * * 1-5' '30 9 * * 1-4'
      mainspring schedule diff '0 9 * * *' '0 9 * * * zone=Asia/Tokyo' --within 7d
      mainspring schedule diff 'every hour' 'every 2 hours' --within 1d -o json
    """
    now = moment(from_, zone, invocation.now)
    span = parse_span(within, "within") or timedelta(0)
    calendars = read_calendars(calendar, zone=zone, now=now, invocation=invocation)
    before, after = (read_schedule(each, zone=zone, now=now, calendars=calendars, job=job) for each in (old, new))
    found = diff(before, after, now, until(now, span), job=job)
    if invocation.wants_json:
        invocation.print_json(_document(found, before, after))
    else:
        _print(found, before, after, span, max(1, count), invocation)


def _document(found: Diff, before: Schedule, after: Schedule) -> dict[str, Any]:
    return {
        "old": {"text": before.text, "words": before.words},
        "new": {"text": after.text, "words": after.words},
        "appeared": [as_stamp(at) for at in found.appeared],
        "vanished": [as_stamp(at) for at in found.vanished],
        "moved": [{"old_at": as_stamp(old), "new_at": as_stamp(new)} for old, new in found.moved],
        "kept": found.kept,
        "compared_until": None if found.compared_until is None else as_stamp(found.compared_until),
        "tzdata": found.tzdata,
    }


def _print(found: Diff, before: Schedule, after: Schedule, span: timedelta, count: int, invocation: Invocation) -> None:
    heading = Table.grid(padding=(0, 2))
    heading.add_column(style="dim", no_wrap=True)
    heading.add_column(overflow="fold")
    for name, schedule in (("old", before), ("new", after)):
        heading.add_row(name, Text(safe(schedule.text), style="bold"))
        heading.add_row("", Text(safe(schedule.words)))
    invocation.print(heading)
    if found.changes:
        invocation.print("", *change_lines(found.changes[:count], before, after, invocation.room))
    if len(found.changes) > count:
        invocation.print(Text(f"… and {len(found.changes) - count:,} more changes", style="dim"))
    invocation.print("", _summary(found, span))
    if found.compared_until is not None:
        invocation.print(
            Text(f"Compared until {as_stamp(found.compared_until)} only: there is too much to compare.", style="yellow")
        )
    invocation.print(Text(f"tzdata {found.tzdata}", style="dim"))


def change_lines(changes: tuple[Change, ...], before: Schedule, after: Schedule, room: int | None) -> Iterator[Text]:
    """Old and new side by side, or one below the other where there is no room."""
    old, new = f"old ({before.zone})", f"new ({after.zone})"
    rows = [list(_cells(change, before, after)) for change in changes]
    lines = fitted((Column(""), Column(old), Column(new)), rows, None)
    if room is None or max(line.cell_len for line in lines) <= room:
        yield from lines
        return
    for kind, was, becomes in ([Text(""), Text(old, style="dim"), Text(new, style="dim")], *rows):
        yield kind.copy().append(" " * (INDENT - kind.cell_len)).append_text(was)
        yield Text(" " * INDENT + "→ ").append_text(becomes)


def _cells(change: Change, before: Schedule, after: Schedule) -> Iterator[Text]:
    kind = "appeared" if change.old_at is None else "vanished" if change.new_at is None else "moved"
    yield Text(kind, style=COLOURS[kind])
    yield Text(_local(change.old_at, before))
    yield Text(_local(change.new_at, after))


def _local(at: datetime | None, schedule: Schedule) -> str:
    return "–" if at is None else as_local(at.astimezone(schedule.zone_info), seconds=bool(at.second))


def _summary(found: Diff, span: timedelta) -> Text:
    if not found.changes:
        kept = counted(found.kept, "instant")
        return Text(f"No difference within {as_span(span.total_seconds())}: {kept} kept.", style="green")
    words = (("moved", len(found.moved)), ("vanished", len(found.vanished)), ("appeared", len(found.appeared)))
    said = [f"{count:,} {word}" for word, count in words if count]
    return Text(f"Within {as_span(span.total_seconds())}: {', '.join(said)}, {found.kept:,} kept.")
