"""`mainspring schedule preview`: the next occurrences with notes, or a year at a glance."""

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import RenderableType
from rich.table import Table
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
from mainspring.cli.text import as_span, safe
from mainspring.schedule.preview import Entry, Preview, preview
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.year import HeatMap, Year, heat_map, year_of

WIDE = 110  # a terminal with room for notes beside the times


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
            invocation.print(*_heading(found), "", *year_lines(counted, schedule, is_wide=invocation.width >= WIDE))
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
    is_wide = invocation.width >= WIDE
    if found.entries:
        table = _table(found, now, is_wide=is_wide)
        invocation.print("", *([table] if is_wide else _lines(table, found, invocation)))
    if found.remarks:
        invocation.print("", *(Text(safe(remark), style="yellow") for remark in found.remarks))
    invocation.print("", Text(f"tzdata {found.tzdata}", style="dim"))


def _table(found: Preview, now: datetime, *, is_wide: bool) -> Table:
    """Local time and UTC side by side, unless they are the same; notes beside them, or below where there is no room."""
    is_utc = found.schedule.zone == "UTC"
    with_seconds = any(entry.due_at.second or entry.nominal_at.second for entry in found.entries)
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("UTC" if is_utc else found.schedule.zone, no_wrap=True)
    if not is_utc:
        table.add_column("UTC", style="dim", no_wrap=True)
    table.add_column("in", justify="right", style="dim", no_wrap=True)
    if is_wide and any(entry.notes for entry in found.entries):
        table.add_column("", style="yellow")
    for entry in found.entries:
        cells = _cells(entry, now, is_utc=is_utc, seconds=with_seconds)
        table.add_row(*cells, *([_notes(entry)] if is_wide else []))
    return table


def _cells(entry: Entry, now: datetime, *, is_utc: bool, seconds: bool) -> Iterator[Text]:
    local = as_local(entry.local_at, seconds=seconds)
    yield Text(local if entry.fires else f"({local})", style="" if entry.fires else "dim")
    if not is_utc:
        yield Text(as_utc(entry.due_at, seconds=seconds) if entry.fires else "")
    yield Text(as_span((entry.due_at - now).total_seconds()) if entry.fires else "")


def _notes(entry: Entry) -> Text:
    return Text(safe("; ".join(entry.notes)), style="yellow")


def _lines(table: Table, found: Preview, invocation: Invocation) -> Iterator[Text]:
    """The rows of a table that has no room for notes, each with its notes below."""
    from rich.console import Console

    console = Console(width=invocation.width, color_system=None, markup=False, highlight=False, emoji=False)
    with console.capture() as capture:
        console.print(table)
    heading, *rows = capture.get().splitlines()
    yield Text(heading.rstrip(), style="dim")
    for row, entry in zip(rows, found.entries, strict=True):
        yield Text(row.rstrip(), style="" if entry.fires else "dim")
        if entry.notes:
            yield Text("  ↳ ", style="yellow").append_text(_notes(entry))


GLYPHS = "·░▒▓█"
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


def year_lines(year: Year, schedule: Schedule, *, is_wide: bool) -> Iterator[RenderableType]:
    """The heat map, its legend, and the fullest day and minute."""
    drawn, width = heat_map(year), 2 if is_wide else 1  # two columns for a week are about as wide as a line is high
    yield Text(f"{year.year}: {_counted(year.total, 'occurrence')} on {_counted(len(year.counts), 'day')}")
    yield ""
    yield _months(drawn, width)
    for name, row in drawn.rows:
        line = Text(f"{name} ", style="dim")
        for level in row:
            line.append((" " if level is None else GLYPHS[level]).ljust(width), style=STYLES[level or 0])
        yield line
    yield ""
    yield _legend(drawn, year)
    yield from _fullest(year, schedule)
    yield ""
    yield Text(f"tzdata {year.tzdata}", style="dim")


def _months(drawn: HeatMap, width: int) -> Text:
    """The names of the months above the columns where they begin."""
    line = ""
    for column, name in drawn.months:
        line = line.ljust(column * width) + name
    return Text(f"    {line}", style="dim")


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
        f"busiest day     {busiest:%a} {busiest.day:2} {busiest:%b %Y}, {_counted(year.most_in_a_day, 'occurrence')}"
    )
    local = as_local(year.busiest_minute.astimezone(schedule.zone_info))
    yield Text(f"busiest minute  {local}, {_counted(year.most_in_a_minute, 'occurrence')}")


def _counted(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
