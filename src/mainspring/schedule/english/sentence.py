"""From a sentence to a schedule: clauses joined by `and`, and the zone they are meant in.

What is counted from now (`tomorrow`, `every other tuesday`) is counted from `now`.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.english.checks import check
from mainspring.schedule.english.clause import Clause, read_parts
from mainspring.schedule.english.meaning import (
    CronMeaning,
    DelayMeaning,
    Meaning,
    RuleMeaning,
    StepMeaning,
    WallMeaning,
    meanings_of,
)
from mainspring.schedule.english.reader import Reader, needs_now, not_understood, unclear
from mainspring.schedule.faults import fault
from mainspring.schedule.instants import Instants
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import union_of
from mainspring.schedule.timeline import Setting, begin_search
from mainspring.schedule.zones import instant_of, wall_of, zone_named, zone_names

if TYPE_CHECKING:
    from datetime import date
    from zoneinfo import ZoneInfo

    from mainspring.schedule.sets import When

MAX_LENGTH = 500
MAX_CLAUSES = 20
WALLS = Setting(zone=zone_named("UTC"))  # where walls and instants go in step


@lru_cache(maxsize=1)
def _zones_by_lower_case() -> dict[str, str]:
    return {name.lower(): name for name in zone_names()}


class Sentence:
    """What was read: the clauses whose union is meant, and the zone if one was named."""

    def __init__(self, text: str, today: date | None) -> None:
        self.reader = Reader(text)
        self.zone: str | None = None
        self.clauses = [self._clause(today)]
        while self._joins_another():
            self.clauses.append(self._clause(today))
        if not self.reader.is_at_end:
            raise not_understood(self.reader)

    def _clause(self, today: date | None) -> Clause:
        clause = Clause(begins=self.reader.token.at)
        read_parts(self.reader, clause, today)
        if self._read_zone():
            read_parts(self.reader, clause, today)
        if clause == Clause(begins=clause.begins) or not (
            self.reader.is_at_end or self.reader.is_next(("and", ";", ","))
        ):
            raise not_understood(self.reader)
        check(self.reader, clause)
        return clause

    def _joins_another(self) -> bool:
        comma = self.reader.word(",", ";", want="the end")
        joins = bool(self.reader.word("and", want="'and'") or comma)
        if joins and len(self.clauses) == MAX_CLAUSES:
            words = f"more than {MAX_CLAUSES} parts are joined by 'and'"
            raise unclear(self.reader.text, self.reader.token.at, words, "Write several schedules.", ())
        return joins

    def _read_zone(self) -> bool:
        """`in Europe/Berlin`, `Europe/Berlin time`, `UTC`."""
        reader = self.reader
        place = reader.place
        reader.skip(",")
        is_named = reader.word("in", want="'in' and a time zone") is not None
        name = reader.raw().rstrip(".,;")
        known = _zones_by_lower_case().get(name.lower())
        if known is None and not is_named and "/" not in name:
            reader.place = place
            return False
        if self.zone is not None or not name:
            raise not_understood(reader)
        self.zone = known or self._unknown(name)
        reader.skip_raw(name)
        reader.skip("time")
        return True

    def _unknown(self, name: str) -> str:
        try:
            return zone_named(name).key
        except InvalidSchedule as error:
            position = self.reader.token.at
            raise unclear(self.reader.text, position, f"'{name[:60]}' is no time zone", error.hint or "", ()) from error


def read(text: str, *, zone: ZoneInfo, now: datetime | None = None) -> When | Schedule:
    """What the sentence says; a whole schedule if it names a zone or a beginning."""
    if len(text) > MAX_LENGTH:
        raise fault(text, MAX_LENGTH, f"a sentence has at most {MAX_LENGTH} characters", code="schedule-too-large")
    sentence = Sentence(text, _day(now, zone))
    home = zone if sentence.zone is None else zone_named(sentence.zone)
    if _day(now, home) != _day(now, zone):  # it is another day where the sentence is meant
        sentence = Sentence(text, _day(now, home))
    reading = _Reading(sentence, home, now)
    when = union_of(reading.whens())
    starts_at = reading.starts_at()
    if sentence.zone is None and starts_at is None:
        return when
    return Schedule(when=when, zone=home.key, starts_at=starts_at)


def _day(now: datetime | None, zone: ZoneInfo) -> date | None:
    return None if now is None else now.astimezone(zone).date()


class _Reading:
    """One sentence in one zone at one instant."""

    def __init__(self, sentence: Sentence, zone: ZoneInfo, now: datetime | None) -> None:
        self._sentence, self._zone, self._now = sentence, zone, now

    def whens(self) -> list[When]:
        found = [
            (clause, meaning)
            for clause in self._sentence.clauses
            for meaning in meanings_of(self._sentence.reader, clause)
        ]
        whens = [self._when(clause, meaning) for clause, meaning in found]
        once = [instant for when in whens if isinstance(when, Instants) for instant in when.at]
        others: list[When] = [when for when in whens if not isinstance(when, Instants)]
        return [*others, Instants(tuple(once))] if once else others

    def starts_at(self) -> datetime | None:
        """Where the whole begins; of several beginnings the earliest. What is counted by twos begins by itself."""
        clauses = self._sentence.clauses
        found = [clause.starts for clause in clauses if clause.starts is not None]
        by_itself = all(clause.count > 1 and not clause.is_within_days for clause in clauses)
        if by_itself or not found or len(found) < len(clauses):
            return None
        return min(instant_of(self._zone, datetime.combine(day, at or time(0))) for day, at in found)

    def _when(self, clause: Clause, meaning: Meaning) -> When:
        match meaning:
            case CronMeaning(text):
                return Cron.parse(text)
            case StepMeaning(step, starts):
                anchor = datetime.combine(starts[0], starts[1] or time(0)) if starts else self._this_minute(clause)
                return Interval(elapsed=step, anchor=anchor)
            case DelayMeaning(delay):
                return Instants.of(self._at(clause) + delay)
            case WallMeaning(wall):
                return Instants.of(self._future(clause, wall))
            case RuleMeaning():
                return self._rule(clause, meaning)

    def _at(self, clause: Clause) -> datetime:
        if self._now is None:
            raise needs_now(self._sentence.reader.text, clause.begins)
        return self._now.astimezone(UTC)

    def _this_minute(self, clause: Clause) -> datetime:
        return self._at(clause).replace(second=0, microsecond=0)

    def _future(self, clause: Clause, wall: datetime) -> datetime:
        """The instant of a wall that was named by a date, or by its distance from today."""
        instant = instant_of(self._zone, wall)
        if any(token.text == "today" for token in self._sentence.reader.tokens) and instant <= self._at(clause):
            words = f"{wall:%Y-%m-%d %H:%M} is over already"
            tomorrow = f"tomorrow at {wall:%H:%M}"
            raise unclear(self._sentence.reader.text, clause.begins, words, "Write, for example,", (tomorrow,))
        return instant

    def _rule(self, clause: Clause, meaning: RuleMeaning) -> Rule:
        """The rule, counted from its first day after now, or from the day that was named."""
        at = meaning.at
        times = f";BYHOUR={at.hour};BYMINUTE={at.minute};BYSECOND={at.second}"
        if meaning.starts is not None:
            before = datetime.combine(meaning.starts, time(0)) - timedelta(microseconds=1)
        else:
            before = wall_of(self._zone, self._at(clause))
        each = Rule.parse(f"FREQ={meaning.frequency}{meaning.rest}{times}", datetime.combine(before.date(), time(0)))
        begin_search()
        first = each.timeline(WALLS).next_after(before.replace(tzinfo=UTC))
        assert first is not None, "every such day comes again"
        text = f"FREQ={meaning.frequency};INTERVAL={meaning.interval}{meaning.rest}"
        return Rule.parse(text, first.replace(tzinfo=None))
