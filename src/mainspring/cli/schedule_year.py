"""A year at a glance: a calendar heat map for the terminal, readable without colour too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from mainspring.cli.schedules import as_local, as_stamp
from mainspring.schedule.year import HeatMap, Year, heat_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from mainspring.schedule.schedule import Schedule

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
