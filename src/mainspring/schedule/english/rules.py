"""Every other …: the rules of one clause, all of them counted from the same day, week, month, quarter or year.

`every other day at 09:00 and 17:00` takes two rules. Said at noon, the first of them is tomorrow's and the second
today's: counted from there, one would run on even and the other on odd days.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.english.meaning import YEAR
from mainspring.schedule.rule import Rule
from mainspring.schedule.timeline import Setting, begin_search
from mainspring.schedule.zones import zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mainspring.schedule.english.meaning import RuleMeaning

WALLS = Setting(zone=zone_named("UTC"))  # where walls and instants go in step
MOMENT = timedelta(microseconds=1)


def rules_after(meanings: Sequence[RuleMeaning], before: datetime) -> Iterator[Rule]:
    """The rules of a clause, of which the first time of all is the first after a wall."""
    firsts = [_first_after(meaning, before) for meaning in meanings]
    begin = min(map(_period, meanings, firsts))
    for meaning, first in zip(meanings, firsts, strict=True):
        starts = first if _period(meaning, first) == begin else _first_after(meaning, begin - MOMENT)
        yield Rule.parse(f"FREQ={meaning.frequency};INTERVAL={meaning.interval}{meaning.rest}", starts)


def _first_after(meaning: RuleMeaning, before: datetime) -> datetime:
    at, months = meaning.at, ",".join(map(str, sorted(meaning.first_months)))
    times = f";BYHOUR={at.hour};BYMINUTE={at.minute};BYSECOND={at.second}"
    within = "" if meaning.first_months == YEAR else f";BYMONTH={months}"
    text = f"FREQ={meaning.frequency}{meaning.rest}{within}{times}"
    each = Rule.parse(text, datetime.combine(before.date(), time(0)))
    begin_search()
    first = each.timeline(WALLS).next_after(before.replace(tzinfo=UTC))
    assert first is not None, "every such day comes again"
    return first.replace(tzinfo=None)


def _period(meaning: RuleMeaning, wall: datetime) -> datetime:
    """The beginning of the day, week, month, quarter or year that is counted."""
    day = wall.replace(hour=0, minute=0, second=0, microsecond=0)
    match meaning.frequency:
        case "WEEKLY":
            return day - timedelta(days=day.weekday())
        case "MONTHLY" if meaning.first_months == YEAR:
            return day.replace(day=1)
        case "MONTHLY":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "YEARLY":
            return day.replace(month=1, day=1)
        case _:
            return day
