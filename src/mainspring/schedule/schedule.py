"""A schedule: when (cron, interval, instants, rule, or sets of them), in a zone, with exceptions and bounds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import CalendarUse, unknown_calendar
from mainspring.schedule.calendar_timelines import with_calendars
from mainspring.schedule.canonical import document_of, text_of
from mainspring.schedule.cron import Cron
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.instants import check_instant
from mainspring.schedule.interval import Interval
from mainspring.schedule.schedule_checks import check_bounds, check_kinds, check_sizes
from mainspring.schedule.sets import When, forms_of
from mainspring.schedule.timeline import EARLIEST, LATEST, GapPolicy, RepeatPolicy, Setting, Timeline, begin_search
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import TZDATA_VERSION, zone_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from zoneinfo import ZoneInfo

    from mainspring.schedule.calendar import Calendar
    from mainspring.schedule.preview import Preview

_MILLISECOND = timedelta(milliseconds=1)
REMEMBERED = 65_536  # answers, some 20 MB


class Reason(NamedTuple):
    """Why a schedule never fires, and what can be done about it."""

    words: str
    remedy: str


class Occurrence(NamedTuple):
    """One nominal instant of a schedule, when it is due, and which tzdata both were computed with."""

    nominal_at: datetime
    due_at: datetime
    tzdata: str


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A frozen value. Instants are in UTC; all walls (of cron, of calendars …) are in `zone`.

    `starts_at` is the first instant that may count, `ends_at` the first that does not any more. `max_runs` counts from
    `starts_at`. In all questions, `job` is the id of the job that asks: `H` and the spread depend on it.
    """

    when: When
    zone: str = "UTC"
    gap: GapPolicy = GapPolicy.AS_CRON
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON
    calendars: tuple[CalendarUse, ...] = ()
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    max_runs: int | None = None
    spread: timedelta | None = None

    def __post_init__(self) -> None:
        check_kinds(self)
        for field in ("starts_at", "ends_at"):
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, check_instant(value, field))
        check_bounds(self)
        check_sizes(self)

    @staticmethod
    def parse(text: str, **settings: Any) -> Schedule:
        """The schedule a text says: cron, `@daily`, `@every 90s`, `PT15M`, instants, RRULE, plain English, or sets.

        Settings are zone, gap, repeat, calendars (by name), starts_at, ends_at, max_runs, spread, anchor, now and job.
        """
        from mainspring.schedule.text import parse  # it makes schedules, so it knows them

        return parse(text, **settings)

    @property
    def zone_info(self) -> ZoneInfo:
        return zone_named(self.zone)

    def next_after(self, instant: datetime, *, job: str = "") -> Occurrence | None:
        """The first occurrence after an instant."""
        found = self._next_nominal(check_question(instant), job)
        return found if found is None or self.spread is None else self._spread(found, job)

    def prev_before(self, instant: datetime, *, job: str = "") -> Occurrence | None:
        """The last occurrence before an instant."""
        instant = check_question(instant)
        if self.ends_at is not None:
            instant = min(instant, self.ends_at)
        if self.max_runs is not None:
            instant = min(instant, self._last_of_runs(job) + TICK)
        found = _prev(self._timeline(job), instant)
        if found is None or (self.starts_at is not None and found.nominal_at < self.starts_at):
            return None
        return found if self.spread is None else self._spread(found, job)

    def between(self, begin: datetime, end: datetime, *, job: str = "") -> Iterator[Occurrence]:
        """All occurrences from `begin` on and before `end`, one by one as they are asked for."""
        end = check_question(end)
        found = self.next_after(check_question(begin) - TICK, job=job)
        while found is not None and found.nominal_at < end:
            yield found
            found = self.next_after(found.nominal_at, job=job)

    def is_due(self, instant: datetime, *, job: str = "") -> bool:
        """Whether an instant is one of the nominal instants."""
        found = self._next_nominal(check_question(instant) - TICK, job)
        return found is not None and found.nominal_at == instant

    def never_fires(self, *, job: str = "") -> str | None:
        """Why there is no occurrence at all for a job; None if there is one."""
        reason = self.why_never(job=job)
        return None if reason is None else reason.words

    def why_never(self, *, job: str = "") -> Reason | None:
        """Why there is no occurrence at all for a job, and what can be done about it; None if there is one."""
        when = self.when.text
        try:
            if self._next_nominal(EARLIEST, job) is not None:
                return None
        except InvalidSchedule:
            words = f"rules, exclusions or calendars leave next to nothing of {when}"
            return Reason(words, "Say when it shall run rather than when not.")
        if _next(_timeline(self.when, self.zone, self.gap, self.repeat, (), self._anchor, job), EARLIEST) is None:
            remedy = "Name days that come (February has 29 at most, and L is the last day), and leave out less."
            return Reason(f"{when} names no day or time that ever comes", remedy)
        if _next(self._timeline(job), EARLIEST) is None:
            return Reason(f"the calendars leave nothing of {when}", "Use other calendars, or other days.")
        return Reason(f"{when} has no instant between its bounds", "Let it start earlier or end later.")

    @cached_property
    def text(self) -> str:
        """The canonical text: equal schedules have equal texts. Calendars go by name."""
        return text_of(self)

    @property
    def words(self) -> str:
        """An English sentence that says what the schedule means."""
        from mainspring.schedule.words.sentence import in_words  # schedules are read far more often than told

        return in_words(self)

    def preview(self, after: datetime, *, count: int = 10, job: str = "") -> Preview:
        """The next occurrences, with notes where something changed them."""
        from mainspring.schedule.preview import preview

        return preview(self, after=after, count=count, job=job)

    def as_document(self) -> dict[str, Any]:
        """The canonical JSON document, calendars included; those that are stored go by name."""
        return document_of(self)

    @property
    def stored_calendars(self) -> tuple[str, ...]:
        """The names of the stored calendars it uses."""
        return tuple(sorted({use.calendar.name for use in self.calendars if use.is_stored}))

    def with_stored(self, known: Mapping[str, Calendar]) -> Schedule:
        """The same with what is in its stored calendars now."""
        for name in self.stored_calendars:
            if name not in known:
                raise unknown_calendar(name, known)
        return replace(
            self,
            calendars=tuple(
                replace(use, calendar=known[use.calendar.name]) if use.is_stored else use for use in self.calendars
            ),
        )

    def _next_nominal(self, instant: datetime, job: str) -> Occurrence | None:
        if self.starts_at is not None and instant < self.starts_at:
            instant = self.starts_at - TICK
        found = _next(self._timeline(job), instant)
        if found is None or (self.ends_at is not None and found.nominal_at >= self.ends_at):
            return None
        return None if self.max_runs is not None and found.nominal_at > self._last_of_runs(job) else found

    def _spread(self, found: Occurrence, job: str) -> Occurrence:
        assert self.spread is not None
        nominal_at, following = found.nominal_at, _next(self._timeline(job), found.nominal_at)
        window = self.spread if following is None else min(self.spread, following.nominal_at - nominal_at)
        return found._replace(due_at=nominal_at + _delay(job, nominal_at, window))

    @cached_property
    def _last_of_runs(self) -> Callable[[str], datetime]:
        @lru_cache(maxsize=256)
        def last(job: str) -> datetime:
            assert self.starts_at is not None
            assert self.max_runs is not None
            timeline, last_at = self._timeline(job), self.starts_at - TICK
            for _ in range(self.max_runs):
                begin_search()
                following = timeline.next_after(last_at)
                if following is None:
                    break
                last_at = following
            return last_at

        return last

    def _timeline(self, job: str) -> Timeline:
        return self._timelines(job) if self._is_hashed else self._shared_timeline

    @cached_property
    def _is_hashed(self) -> bool:
        return any(isinstance(form, Cron) and form.is_hashed for form in forms_of(self.when))

    @cached_property
    def _anchor(self) -> datetime | None:
        """Where intervals without an anchor count from. Other forms share their timelines whenever they start."""
        floats = any(isinstance(form, Interval) and form.anchor is None for form in forms_of(self.when))
        return self.starts_at if floats else None

    @cached_property
    def _shared_timeline(self) -> Timeline:
        return _timeline(self.when, self.zone, self.gap, self.repeat, self.calendars, self._anchor, "")

    @cached_property
    def _timelines(self) -> Callable[[str], Timeline]:
        @lru_cache(maxsize=4096)
        def timeline(job: str) -> Timeline:
            when = self.when.resolved(job) if isinstance(self.when, Cron) else self.when
            left = "" if isinstance(when, Cron) else job  # jobs with the same numbers share what is known about them
            return _timeline(when, self.zone, self.gap, self.repeat, self.calendars, self._anchor, left)

        return timeline

    def __getstate__(self) -> dict[str, Any]:
        """The value alone: what was worked out from it cannot travel, and need not."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def check_question(instant: datetime) -> datetime:
    """An instant to ask about; those far away are as good as the edges of time."""
    if not isinstance(instant, datetime) or instant.tzinfo is None:
        raise broken_rule("instant", instant, "must be a datetime with a time zone", code="invalid-instant")
    if EARLIEST <= instant <= LATEST:
        return instant
    return EARLIEST if instant < EARLIEST else LATEST


@lru_cache(maxsize=8192)
def _timeline(
    when: When,
    zone: str,
    gap: GapPolicy,
    repeat: RepeatPolicy,
    calendars: tuple[CalendarUse, ...],
    starts_at: datetime | None,
    job: str,
) -> Timeline:
    """One timeline for all schedules that mean the same: what is remembered about it serves all of them."""
    info = zone_named(zone)
    setting = Setting(zone=info, gap=gap, repeat=repeat, starts_at=starts_at, job=job)
    return with_calendars(when.timeline(setting), calendars, info)


@lru_cache(maxsize=REMEMBERED)
def _next(timeline: Timeline, instant: datetime) -> Occurrence | None:
    begin_search()
    found = timeline.next_after(instant)
    return None if found is None or found >= LATEST else Occurrence(found, found, TZDATA_VERSION)


@lru_cache(maxsize=REMEMBERED)
def _prev(timeline: Timeline, instant: datetime) -> Occurrence | None:
    begin_search()
    found = timeline.prev_before(instant)
    return None if found is None or found < EARLIEST else Occurrence(found, found, TZDATA_VERSION)


def _delay(job: str, nominal_at: datetime, window: timedelta) -> timedelta:
    """From nothing to just below the window, in whole milliseconds; always the same for the same job and instant."""
    seed = f"{nominal_at.isoformat()}\0{job}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest())
    return (number * (window // _MILLISECOND) >> 64) * _MILLISECOND
