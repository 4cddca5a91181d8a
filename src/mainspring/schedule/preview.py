"""What a schedule will do: the next occurrences in local time and UTC, with notes where something changed them.

What calendars took away or moved is found by asking the same schedule without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from mainspring.schedule.calendar import BlackoutPolicy, CalendarUse, Use
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.interval import Interval
from mainspring.schedule.jumps import jumps_between
from mainspring.schedule.schedule import check_question
from mainspring.schedule.walls import TICK
from mainspring.schedule.words.phrases import MONTHS, clock, counted, moment, ordinal, span
from mainspring.schedule.words.sentence import in_words
from mainspring.schedule.zones import TZDATA_VERSION, wall_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from mainspring.schedule.schedule import Occurrence, Schedule

MAX_LOOKED_AT = 5_000
MAX_COUNT = 1_000
YEAR = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Neighbouring occurrences that one calendar took away."""

    first_at: datetime
    count: int
    calendar: str
    reason: str
    is_complete: bool = True


def changes_by_calendar(
    schedule: Schedule, after: datetime, until: datetime, job: str, instants: Set[datetime]
) -> tuple[list[Dropped], dict[datetime, Dropped]]:
    """What was dropped, in groups; and what was moved, by the instant it was moved to."""
    if not schedule.calendars:
        return [], {}
    plain = replace(schedule, calendars=(), max_runs=None, spread=None)
    wanted = [each.nominal_at for each in islice(plain.between(after + TICK, until + TICK, job=job), MAX_LOOKED_AT)]
    groups = _groups(schedule, wanted, instants, job)
    moves = any(use.then is BlackoutPolicy.MOVE for use in schedule.calendars)
    moved_to = sorted(instants - set(wanted)) if moves else []
    moved = {at: gone for at in moved_to if (gone := _moved_to(at, groups)) is not None}
    dropped = [gone for gone in groups if gone not in moved.values()]
    return [_marked(gone, is_complete=len(wanted) < MAX_LOOKED_AT or gone is not groups[-1]) for gone in dropped], moved


def _groups(schedule: Schedule, wanted: list[datetime], instants: Set[datetime], job: str) -> list[Dropped]:
    """Neighbours that are missing, with the calendar that took the first of them."""
    found: list[Dropped] = []
    is_open = False
    for at in wanted:
        if at in instants:
            is_open = False
            continue
        if is_open and found:
            found[-1] = replace(found[-1], count=found[-1].count + 1)
            continue
        use = _taker(schedule, at, job)
        if use is not None:
            found.append(Dropped(first_at=at, count=1, calendar=use.calendar.name, reason=_reason(use)))
            is_open = True
    return found


def _taker(schedule: Schedule, at: datetime, job: str) -> CalendarUse | None:
    """The calendar without which it would fire."""
    for use in schedule.calendars:
        if not replace(schedule, calendars=(use,), max_runs=None, spread=None).is_due(at, job=job):
            return use
    return None


def _reason(use: CalendarUse) -> str:
    match use.use:
        case Use.INCLUDE:
            return f"not within the calendar {use.calendar.name}"
        case Use.EXCLUDE:
            return f"within the calendar {use.calendar.name}"
        case Use.BLACKOUT:
            moves = use.then is BlackoutPolicy.MOVE
            return f"within the blackout {use.calendar.name}" + (", which runs once at its end" if moves else "")


def _moved_to(at: datetime, groups: list[Dropped]) -> Dropped | None:
    """The last group before the end of a blackout is what was moved there."""
    before = [gone for gone in groups if gone.first_at < at]
    return before[-1] if before else None


def _marked(gone: Dropped, *, is_complete: bool) -> Dropped:
    return replace(gone, is_complete=is_complete)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An occurrence, or one that does not happen (`fires` is false), and why it is not elsewhere."""

    nominal_at: datetime  # UTC
    due_at: datetime  # UTC, with the spread
    local_at: datetime  # the nominal instant in the schedule's zone
    fires: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The answer, and the version of tzdata it was computed with."""

    schedule: Schedule
    words: str
    entries: tuple[Entry, ...]
    remarks: tuple[str, ...]
    tzdata: str


def preview(schedule: Schedule, *, after: datetime, count: int = 10, job: str = "") -> Preview:
    """The next `count` occurrences after an instant, and what does not happen between them."""
    if not 1 <= count <= MAX_COUNT:
        raise broken_rule("count", count, f"must be from 1 to {MAX_COUNT:,}", code="invalid-count")
    after = check_question(after)
    occurrences = list(islice(_following(schedule, after, job), count))
    until = occurrences[-1].nominal_at if occurrences else schedule.ends_at or after + YEAR
    noted = _Notes(schedule, after, until, job, occurrences)
    return Preview(
        schedule=schedule,
        words=in_words(schedule),
        entries=tuple(sorted(noted.entries(), key=_place)),
        remarks=tuple(_remarks(schedule, after, occurrences, count, job)),
        tzdata=TZDATA_VERSION,
    )


def _following(schedule: Schedule, after: datetime, job: str) -> Iterator[Occurrence]:
    found = schedule.next_after(after, job=job)
    while found is not None:
        yield found
        found = schedule.next_after(found.nominal_at, job=job)


def _place(entry: Entry) -> tuple[datetime, datetime]:
    """Where an entry stands. What a gap swallowed comes before what runs at its end: its clock time is earlier."""
    return entry.nominal_at, entry.local_at.replace(tzinfo=None)


class _Notes:
    """What changed the occurrences of one stretch of time."""

    def __init__(
        self, schedule: Schedule, after: datetime, until: datetime, job: str, occurrences: list[Occurrence]
    ) -> None:
        self._schedule, self._zone, self._occurrences = schedule, zone_named(schedule.zone), occurrences
        self._instants = {each.nominal_at for each in occurrences}
        self._jumps = jumps_between(schedule, after, until, job)
        self._dropped, self._moved = changes_by_calendar(schedule, after, until, job, self._instants)

    def entries(self) -> Iterator[Entry]:
        before: datetime | None = None
        for each in self._occurrences:
            entry = self._entry(each.nominal_at, each.due_at)
            yield replace(entry, notes=tuple(self._notes(entry, before)))
            before = entry.local_at
        for jump in self._jumps:
            if not jump.fires:
                local = jump.wall.replace(tzinfo=self._zone)  # a time that never comes, as it was wanted
                yield Entry(nominal_at=jump.at, due_at=jump.at, local_at=local, fires=False, notes=(jump.note,))
        for gone in self._dropped:
            yield replace(self._entry(gone.first_at, gone.first_at), fires=False, notes=(self._gone(gone),))

    def _entry(self, nominal_at: datetime, due_at: datetime) -> Entry:
        return Entry(nominal_at=nominal_at, due_at=due_at, local_at=nominal_at.astimezone(self._zone))

    def _notes(self, entry: Entry, before: datetime | None) -> Iterator[str]:
        jumped = [jump.note for jump in self._jumps if jump.fires and jump.at == entry.nominal_at]
        yield from dict.fromkeys(jumped)
        if (moved := self._moved.get(entry.nominal_at)) is not None:
            yield f"moved from {self._local(moved.first_at)} by the blackout {moved.calendar}"
        yield from self._repeated(entry.local_at)
        if not jumped and before is not None:
            yield from _clock_change(before, entry.local_at)
        yield from self._shortened(entry.local_at)
        if entry.due_at != entry.nominal_at:
            yield f"delayed by {span(_in_seconds(entry.due_at - entry.nominal_at))}"

    def _repeated(self, local: datetime) -> Iterator[str]:
        """Whether this wall comes twice that day, and which of the two this is."""
        first, second = local.replace(fold=0), local.replace(fold=1)
        if first.utcoffset() == second.utcoffset():
            return
        other = (first if local.fold else second).astimezone(self._occurrences[0].nominal_at.tzinfo)
        place = "second" if local.fold else "first"
        both = other in self._instants
        words = f"this is the {place}" if both else f"runs the {place} time only"
        yield f"{clock(local)} comes twice on {local.day} {MONTHS[local.month - 1]}; {words}"

    def _shortened(self, local: datetime) -> Iterator[str]:
        """A month without the day that an interval counts by."""
        when = self._schedule.when
        if not isinstance(when, Interval) or not when.months:
            return
        anchor = when.anchor or self._schedule.starts_at
        wall = wall_of(self._zone, anchor) if anchor is not None and anchor.tzinfo else anchor
        if wall is not None and local.day < wall.day:
            yield f"{MONTHS[local.month - 1]} has no {ordinal(wall.day)}"

    def _gone(self, gone: Dropped) -> str:
        more = f", and {gone.count - 1:,}{'' if gone.is_complete else ' or more'} after it" if gone.count > 1 else ""
        return f"dropped{more}: {gone.reason}"

    def _local(self, instant: datetime) -> str:
        return moment(instant.astimezone(self._zone))


def _in_seconds(length: timedelta) -> timedelta:
    return timedelta(seconds=int(length.total_seconds())) if length >= timedelta(seconds=1) else length


def _clock_change(before: datetime, after: datetime) -> Iterator[str]:
    """A note where the offset from UTC is another than at the occurrence before."""
    change = (after.utcoffset() or timedelta(0)) - (before.utcoffset() or timedelta(0))
    if change:
        way = "forward" if change > timedelta(0) else "back"
        yield f"clocks went {way} by {span(abs(change))}"


def _remarks(schedule: Schedule, after: datetime, occurrences: list[Occurrence], count: int, job: str) -> Iterator[str]:
    """What a bound did to the list as a whole."""
    zone = zone_named(schedule.zone)
    if schedule.starts_at is not None and schedule.starts_at > after:
        yield f"Nothing before {moment(wall_of(zone, schedule.starts_at))}, where it starts."
    if len(occurrences) == count:
        return
    if (reason := schedule.never_fires(job=job)) is not None:
        yield f"It never fires: {reason}"
    elif schedule.ends_at is not None and (not occurrences or schedule.max_runs is None):
        yield f"Nothing from {moment(wall_of(zone, schedule.ends_at))} on, where it ends."
    elif schedule.max_runs is not None:
        yield f"Nothing after that: it runs {counted(schedule.max_runs, 'time')} at most."
    else:
        yield "Nothing after that."
