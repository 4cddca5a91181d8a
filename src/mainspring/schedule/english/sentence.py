"""From a sentence to a schedule: clauses joined by `and`, and the zone they are meant in.

What is counted from now (`tomorrow`, `every other tuesday`) is counted from `now`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.english.checks import check
from mainspring.schedule.english.clause import Clause
from mainspring.schedule.english.dates import LAST_YEAR, exceeds_last_year, year_out_of_range
from mainspring.schedule.english.meaning import (
    CronMeaning,
    DelayMeaning,
    PlainRuleMeaning,
    RuleMeaning,
    StepMeaning,
    WallMeaning,
    excluded_days,
    meanings_of,
)
from mainspring.schedule.english.once_checks import check_one_day
from mainspring.schedule.english.parts import read_parts
from mainspring.schedule.english.places import known_zone, refuse_unknown_zone
from mainspring.schedule.english.reader import Reader, Rewrite, Token
from mainspring.schedule.english.refusals import Refusal, needs_now, not_understood
from mainspring.schedule.english.rules import rules_after
from mainspring.schedule.faults import fault
from mainspring.schedule.instants import Instants
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Except, union_of
from mainspring.schedule.timeline import LATEST
from mainspring.schedule.walls import months_after
from mainspring.schedule.zones import instant_of, wall_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from zoneinfo import ZoneInfo

    from mainspring.schedule.english.bounds import Length
    from mainspring.schedule.sets import When

MAX_LENGTH = 500
MAX_CLAUSES = 20


class Sentence:
    """What was read: the clauses whose union is meant, and the zone if one was named."""

    def __init__(self, text: str, today: date | None) -> None:
        self.reader = Reader(text)
        self.zone: str | None = None
        self.clauses = [self._clause(today)]
        while self._joins_another():
            self.clauses.append(self._clause(today, self.clauses[-1]))
        if not self.reader.is_at_end:
            raise not_understood(self.reader)
        self._refuse_choice()
        self._share_bounds()
        check_one_day(self.reader, self.clauses)

    @property
    def bounds(self) -> Clause:
        """The clause that has the bounds of the whole."""
        return self.clauses[-1]

    def _clause(self, today: date | None, before: Clause | None = None) -> Clause:
        clause = Clause(begins=self.reader.token.at)
        read_parts(self.reader, clause, today)
        if self._read_zone():
            read_parts(self.reader, clause, today)
        if clause == Clause(begins=clause.begins) or not (
            self.reader.is_at_end or self.reader.is_next(("and", "or", ";", ","))
        ):
            raise not_understood(self.reader)
        if before is not None:
            _share_every(before, clause)
        check(self.reader, clause, today)
        return clause

    def _joins_another(self) -> bool:
        comma = self.reader.word(",", ";", want="the end")
        joins = bool(self.reader.word("and", "or", want="'and'") or comma)
        if joins and len(self.clauses) == MAX_CLAUSES:
            words = f"more than {MAX_CLAUSES} parts are joined by 'and'"
            raise Refusal(self.reader.text, self.reader.token.at, words, remedy="Write several schedules.")
        return joins

    def _refuse_choice(self) -> None:
        """`mondays or fridays` are both; `tomorrow at 9am or 5pm` is one of the two, and nobody says which."""
        reader = self.reader
        choice = next((token for token in reader.tokens if token.text == "or"), None)
        if choice is None or all(clause.recurs for clause in self.clauses):
            return
        rewrites = [reader.replaced(choice, choice, "and")]
        if self.zone is None and not any("bound" in clause.said for clause in self.clauses):
            rewrites.append(reader.without(choice, reader.tokens[-1]))
        raise Refusal(reader.text, choice.at, "'or' leaves open which of the two is meant", rewrites=rewrites)

    def _share_bounds(self) -> None:
        """A beginning and an end are those of the whole, and are said once, at the end."""
        last = self.bounds
        for clause in self.clauses[:-1]:
            for bound in ("starts", "ends", "lasts", "runs"):
                said = getattr(clause, bound)
                if said is not None and said != getattr(last, bound):
                    words = "it begins and ends as a whole, so that is said once, after all of its parts"
                    example = "every weekday at 09:00 and every sunday at 11:00 until 2027-03-01"
                    raise Refusal(self.reader.text, clause.begins, words, examples=(example,))
            clause.starts, clause.steps_from = last.starts, last.steps_from

    def _read_zone(self) -> bool:
        """`in Europe/Berlin`, `Europe/Berlin time`, `UTC`."""
        reader = self.reader
        place = reader.place
        reader.skip(",")
        is_named = reader.word("in", want="'in' and a time zone") is not None
        name = reader.raw().rstrip(".,;")
        known = known_zone(name)
        if known is None:
            refuse_unknown_zone(reader, name, is_named=is_named)
            reader.place = place
            return False
        if self.zone is not None:
            raise not_understood(reader)
        self.zone = known
        reader.skip_raw(name)
        reader.skip("time")
        return True


def _share_every(before: Clause, clause: Clause) -> None:
    """`every monday at 9am and friday at 10am`: every Friday, too. What is counted by twos is said for each."""
    one, other = before.days, clause.days
    if one is None or other is None or clause.repeat is not None or clause.once is not None or before.count > 1:
        return
    is_alike = all(bool(getattr(one, kind)) == bool(getattr(other, kind)) for kind in ("weekdays", "dates", "months"))
    if is_alike and (before.repeat is not None or one.recurs) and not before.is_within_days:
        clause.days = replace(other, recurs=True, of_quarter=other.of_quarter or before.is_quarterly)


def read(
    text: str,
    *,
    zone: ZoneInfo,
    now: datetime | None = None,
    shown: Callable[[str], str | None] = lambda offer: offer,
) -> When | Schedule:
    """What the sentence says; a whole schedule if it names a zone or a bound.

    `shown` says of what is offered instead how it is shown where the sentence is a part of more; None if it is no good.
    """
    if len(text) > MAX_LENGTH:
        raise fault(text, MAX_LENGTH, f"a sentence has at most {MAX_LENGTH} characters", code="schedule-too-large")
    try:
        return _read(text, zone, now)
    except Refusal as refusal:
        raise refusal.as_error(lambda offer: _refusal_of(offer, zone, now), shown) from None


def _refusal_of(text: str, zone: ZoneInfo, now: datetime | None) -> Refusal | None:
    """Why what might be offered would be refused, if it would, or is over."""
    try:
        found = _read(text, zone, now)
        schedule = found if isinstance(found, Schedule) else Schedule(when=found, zone=zone.key)
        has_next = schedule.never_fires() is None if now is None else schedule.next_after(now) is not None
    except Refusal as refusal:
        return refusal
    except InvalidSchedule as error:
        return Refusal(text, 0, error.message)
    return None if has_next else Refusal(text, 0, "it never fires any more")


def _read(text: str, zone: ZoneInfo, now: datetime | None) -> When | Schedule:
    sentence = Sentence(text, _day(now, zone))
    home = zone if sentence.zone is None else zone_named(sentence.zone)
    if _day(now, home) != _day(now, zone):  # it is another day where the sentence is meant
        sentence = Sentence(text, _day(now, home))
    reading = _Reading(sentence, home, now)
    when = union_of(reading.whens())
    starts_at, ends_at, runs = reading.starts_at(), reading.ends_at(), sentence.bounds.runs
    if sentence.zone is None and starts_at is None and ends_at is None and runs is None:
        return when
    return Schedule(when=when, zone=home.key, starts_at=starts_at, ends_at=ends_at, max_runs=runs)


def _day(now: datetime | None, zone: ZoneInfo) -> date | None:
    return None if now is None else now.astimezone(zone).date()


class _Reading:
    """One sentence in one zone at one instant."""

    def __init__(self, sentence: Sentence, zone: ZoneInfo, now: datetime | None) -> None:
        self._sentence, self._zone, self._now = sentence, zone, now
        self._found = [(clause, self._of_clause(clause)) for clause in sentence.clauses]

    def whens(self) -> list[When]:
        whens = [when for _, found in self._found for when in found]
        once = [instant for when in whens if isinstance(when, Instants) for instant in when.at]
        others: list[When] = [when for when in whens if not isinstance(when, Instants)]
        return [*others, Instants(tuple(once))] if once else others

    def starts_at(self) -> datetime | None:
        """Where the whole begins. What is counted by twos begins by itself; spans and runs are counted from now."""
        bounds = self._sentence.bounds
        is_counted = bounds.runs is not None or bounds.lasts is not None
        if bounds.starts is None:
            return self._at(bounds).replace(microsecond=0) if is_counted else None
        day, at = bounds.starts
        wall = datetime.combine(day, at or time(0))
        if not is_counted and all(self._begins_by_itself(*each, wall) for each in self._found):
            return None
        return instant_of(self._zone, wall)

    def _begins_by_itself(self, clause: Clause, whens: list[When], wall: datetime) -> bool:
        """Whether its rules begin where it starts: by `starting`, and not by `counted from`, which is no bound."""
        return clause.counted_from is None and all(isinstance(when, Rule) and when.starts >= wall for when in whens)

    def ends_at(self) -> datetime | None:
        bounds, starts_at = self._sentence.bounds, self.starts_at()
        if bounds.lasts is not None and starts_at is not None:
            return self._after(starts_at, bounds.lasts)
        if bounds.ends is None:
            return None
        ends_at = min(LATEST, instant_of(self._zone, datetime.combine(bounds.ends.day, bounds.ends.at or time(0))))
        if starts_at is not None and ends_at <= starts_at:
            text, begins = self._sentence.reader.text, bounds.begins
            raise Refusal(text, begins, "it ends before it starts", remedy="Let it end after it starts.")
        return ends_at

    def _after(self, starts_at: datetime, length: Length) -> datetime:
        """So long after an instant. Days and months keep the time of day; the 31st may become the last of a month."""
        months, days, elapsed = length.span
        wall = wall_of(self._zone, starts_at) + timedelta(days=days)
        if exceeds_last_year(wall, months):
            text, begins = self._sentence.reader.text, self._sentence.bounds.begins
            raise year_out_of_range(text, begins, f"'{length.said}' is beyond the year {LAST_YEAR}")
        return starts_at + elapsed if elapsed else instant_of(self._zone, months_after(wall, months))

    def _of_clause(self, clause: Clause) -> list[When]:
        meanings = meanings_of(self._sentence.reader, clause)
        rules = [meaning for meaning in meanings if isinstance(meaning, RuleMeaning)]
        whens: list[When] = list(rules_after(rules, self._before(clause))) if rules else []
        whens += [self._when(clause, meaning) for meaning in meanings if not isinstance(meaning, RuleMeaning)]
        without = [Cron.parse(each.text) for each in excluded_days(self._sentence.reader, clause)]
        return [Except(union_of(whens), union_of([*without]))] if without else whens

    def _before(self, clause: Clause) -> datetime:
        """What rules are counted from: the first is after it."""
        if clause.anchor is None:
            return wall_of(self._zone, self._at(clause))
        return datetime.combine(clause.anchor[0], time(0)) - timedelta(microseconds=1)

    def _when(
        self, clause: Clause, meaning: CronMeaning | PlainRuleMeaning | StepMeaning | DelayMeaning | WallMeaning
    ) -> When:
        match meaning:
            case CronMeaning(text):
                return Cron.parse(text)
            case PlainRuleMeaning(text):
                return Rule.parse(text)
            case StepMeaning(step, starts):
                anchor = datetime.combine(starts[0], starts[1] or time(0)) if starts else self._this_minute(clause)
                return Interval(elapsed=step, anchor=anchor)
            case DelayMeaning(delay):
                return Instants.of(self._at(clause) + delay)
            case WallMeaning(wall):
                return Instants.of(self._future(clause, wall))

    def _at(self, clause: Clause) -> datetime:
        if self._now is None:
            raise needs_now(self._sentence.reader.text, clause.begins)
        return self._now.astimezone(UTC)

    def _this_minute(self, clause: Clause) -> datetime:
        return self._at(clause).replace(second=0, microsecond=0)

    def _future(self, clause: Clause, wall: datetime) -> datetime:
        """The instant of a wall that was named by a date, or by its distance from today."""
        instant = instant_of(self._zone, wall)
        if self._today() is not None and instant <= self._at(clause):
            words = f"{wall:%Y-%m-%d %H:%M} is over already"
            raise Refusal(self._sentence.reader.text, clause.begins, words, rewrites=self._tomorrow())
        return instant

    def _tomorrow(self) -> list[Rewrite]:
        reader, today = self._sentence.reader, self._today()
        return [] if today is None else [reader.replaced(today, today, "tomorrow")]

    def _today(self) -> Token | None:
        """The word that says that it is today's time."""
        words = ("today", "tonight", "this")
        return next((token for token in self._sentence.reader.tokens if token.text in words), None)
