"""`mainspring schedule preview`: the next occurrences with notes, or a year at a glance."""

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import RenderableType
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.schedules import (
    CalendarFiles,
    From,
    JobId,
    Zone,
    as_local,
    as_stamp,
    as_utc,
    moment,
    read_calendars,
    read_words,
)
from mainspring.cli.tables import Column, fitted
from mainspring.cli.text import as_span, counted, safe
from mainspring.schedule.preview import Entry, Preview, preview
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.year import HeatMap, Year, heat_map, year_of


@command("preview")
def show(
    *text: Annotated[str, Parameter(help="The schedule, in one or several words.", required=True)],
    zone: Zone = "UTC",
    count: Annotated[int, Parameter(help="How many occurrences.")] = 10,
    year: Annotated[int | None, Parameter(help="Show this year at a glance instead.")] = None,
    from_: From = None,
    calendar: CalendarFiles = (),
    job: JobId = "",
    invocation: Invocation,
) -> None:
    """Show when a schedule will fire.

    Notes say where daylight saving, a calendar or a bound changed something.
    What a calendar dropped is shown, in brackets. -o ics writes an iCalendar
    file.

    Examples:
      mainspring schedule preview '30 2 * * *' --zone Europe/Berlin --count 5
      mainspring schedule preview every other tuesday at noon --from 2027-01-01
      mainspring schedule preview '0 9 * * * not=off' --calendar off=holidays.ics
      mainspring schedule preview '*/15 8-17 * * 1-5' --year 2026
      mainspring schedule preview every weekday at 09:00 -o ics > standup.ics
    """
    now = moment(from_, zone, invocation.now)
    calendars = read_calendars(calendar, zone=zone, now=now, invocation=invocation)
    schedule = read_words(text, zone=zone, now=now, calendars=calendars, job=job)
    found = preview(schedule, after=now, count=count, job=job)
    if invocation.output == "ics":
        _write_icalendar(found, now)
    elif year is not None:
        counted = year_of(schedule, year, job=job)
        if invocation.wants_json:
            invocation.print_json(_about(found) | year_document(counted))
        else:
            invocation.print(*_heading(found), "", *year_lines(counted, schedule, width=invocation.width))
    elif invocation.wants_json:
        invocation.print_json(
            _about(found) | {"occurrences": [_document(each) for each in found.entries], "remarks": found.remarks}
        )
    else:
        _print(found, now, invocation)


def _write_icalendar(found: Preview, now: datetime) -> None:
    from mainspring.schedule.icalendar import write_preview

    sys.stdout.buffer.write(write_preview(found, title=safe(found.schedule.text, 200), stamp=now))


def _about(found: Preview) -> dict[str, Any]:
    schedule = found.schedule
    return {"text": schedule.text, "words": found.words, "zone": schedule.zone, "tzdata": found.tzdata}


def _document(entry: Entry) -> dict[str, Any]:
    return {
        "fires": entry.fires,
        "nominal_at": as_stamp(entry.nominal_at),
        "due_at": as_stamp(entry.due_at),
        "local": entry.local_at.isoformat(),
        "notes": entry.notes,
    }


def _heading(found: Preview) -> Iterator[Text]:
    yield Text(safe(found.schedule.text), style="bold")
    yield Text(safe(found.words))


def _print(found: Preview, now: datetime, invocation: Invocation) -> None:
    invocation.print(*_heading(found))
    if found.entries:
        invocation.print("")
        _print_entries(found, now, invocation)
    if found.remarks:
        invocation.print("", *(Text(safe(remark), style="yellow") for remark in found.remarks))
    invocation.print("", Text(f"tzdata {found.tzdata}", style="dim"))


def _print_entries(found: Preview, now: datetime, invocation: Invocation) -> None:
    """Local time and UTC side by side, unless they are the same; notes beside them, or below where there is no room."""
    columns, rows = _table(found, now)
    notes = [_notes(entry) for entry in found.entries]
    beside = fitted((*columns, Column("")), [(*row, note) for row, note in zip(rows, notes, strict=True)], None)
    room = invocation.room
    if room is None or max(line.cell_len for line in beside) <= room:
        invocation.print_lines(beside)
        return
    heading, *lines = fitted(columns, rows, room)
    invocation.print(heading)
    for line, note in zip(lines, notes, strict=True):
        invocation.print(line, *([Text("  ↳ ", style="yellow").append_text(note)] if note else []))


def _table(found: Preview, now: datetime) -> tuple[list[Column], list[list[Text]]]:
    """Where there is no room for all columns, how long it is until then is left out first, then UTC."""
    is_utc = found.schedule.zone == "UTC"
    with_seconds = any(entry.due_at.second or entry.nominal_at.second for entry in found.entries)
    columns = [
        Column("UTC" if is_utc else found.schedule.zone),
        *([] if is_utc else [Column("UTC", leave_out=1)]),
        Column("in", is_number=True, leave_out=2),
    ]
    return columns, [list(_cells(entry, now, is_utc=is_utc, seconds=with_seconds)) for entry in found.entries]


def _cells(entry: Entry, now: datetime, *, is_utc: bool, seconds: bool) -> Iterator[Text]:
    local = as_local(entry.local_at, seconds=seconds)
    yield Text(local if entry.fires else f"({local})", style="" if entry.fires else "dim")
    if not is_utc:
        yield Text(as_utc(entry.due_at, seconds=seconds) if entry.fires else "", style="dim")
    yield Text(as_span((entry.due_at - now).total_seconds()) if entry.fires else "", style="dim")


def _notes(entry: Entry) -> Text:
    return Text(safe("; ".join(entry.notes)), style="yellow")


GLYPHS = "·░▒▓█"
MARGIN = 4  # the days of the week, and a space
STYLES = ("dim", "green", "green", "green", "bright_green")


def year_document(year: Year) -> dict[str, Any]:
    return {
        "year": year.year,
        "total": year.total,
        "days": {day.isoformat(): count for day, count in year.counts.items()},
        "busiest_minute": None if year.busiest_minute is None else as_stamp(year.busiest_minute),
        "most_in_a_minute": year.most_in_a_minute,
        "counted_until": None if year.counted_until is None else year.counted_until.isoformat(),
    }


def year_lines(year: Year, schedule: Schedule, *, width: int) -> Iterator[RenderableType]:
    """The heat map, its legend, and the fullest day and minute."""
    drawn = heat_map(year)
    yield Text(f"{year.year}: {counted(year.total, 'occurrence')} on {counted(len(year.counts), 'day')}")
    yield ""
    yield from _map_lines(drawn, width)
    yield ""
    yield _legend(drawn, year)
    yield from _fullest(year, schedule)
    yield ""
    yield Text(f"tzdata {year.tzdata}", style="dim")


def _map_lines(drawn: HeatMap, width: int) -> Iterator[Text]:
    """Two characters for a week, which are about as wide as a line is high; one, or half a year, where it is narrow."""
    weeks = len(drawn.rows[0][1])
    cell = 2 if width >= MARGIN + 2 * weeks else 1
    half = weeks if width >= MARGIN + weeks else drawn.months[6][0]
    for first in range(0, weeks, half):
        last = weeks if first else half
        yield _months(drawn, first, last, cell)
        for name, row in drawn.rows:
            line = Text(f"{name} ", style="dim")
            for level in row[first:last]:
                line.append((" " if level is None else GLYPHS[level]).ljust(cell), style=STYLES[level or 0])
            yield line
        if last == weeks:
            return
        yield Text("")


def _months(drawn: HeatMap, first: int, last: int, cell: int) -> Text:
    """The names of the months above the columns where they begin."""
    line = ""
    for column, name in drawn.months:
        if first <= column < last:
            line = line.ljust((column - first) * cell) + name
    return Text(f"{' ' * MARGIN}{line}", style="dim")


def _legend(drawn: HeatMap, year: Year) -> Text:
    """What the glyphs stand for; levels that no count can have are left out."""
    line = Text("    ")
    line.append(f"{GLYPHS[0]} none", style=STYLES[0])
    for level in range(1, len(GLYPHS)):
        least, most = drawn.bounds[level - 1] + 1, drawn.bounds[level]
        if year.most_in_a_day and least <= most:
            line.append(f"   {GLYPHS[level]}", style=STYLES[level])
            line.append(f" {most:,}" if least == most else f" {least:,}–{most:,}", style="dim")
    line.append(" a day", style="dim")
    return line


def _fullest(year: Year, schedule: Schedule) -> Iterator[Text]:
    if year.counted_until is not None:
        words = f"Counted until {year.counted_until} only: there are too many to count them one by one."
        yield Text(words, style="yellow")
    if not year.counts or year.busiest_minute is None:
        return
    yield Text("")
    busiest = max(year.counts, key=lambda day: (year.counts[day], -day.toordinal()))
    yield Text(
        f"busiest day     {busiest:%a} {busiest.day:2} {busiest:%b %Y}, {counted(year.most_in_a_day, 'occurrence')}"
    )
    local = as_local(year.busiest_minute.astimezone(schedule.zone_info))
    yield Text(f"busiest minute  {local}, {counted(year.most_in_a_minute, 'occurrence')}")
