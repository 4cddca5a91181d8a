"""What becomes of the next instant of a schedule: it fires, or it is skipped for a reason. The clock is an argument.

An instant is *missed* when it is late by more than `ON_TIME`: what a restart or a failover delays fires as if nothing
had been, whatever the rule. From the first missed one on, the rule for catching up decides, up to the present.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from mainspring.schedule.faults import broken_rule
from mainspring.schedule.walls import TICK

if TYPE_CHECKING:
    from mainspring.schedule.schedule import Occurrence, Schedule

ON_TIME = timedelta(minutes=1)
LONGEST_WINDOW = timedelta(days=366)


class CatchUpRule(StrEnum):
    """Which of the instants that were missed fire after all."""

    LATEST = "latest"  # one run, for the last of them
    ALL = "all"  # each of them, in order
    EARLIEST = "earliest"  # one run, for the first of them
    NONE = "none"


class SkipReason(StrEnum):
    """Why an instant became no run of its own."""

    COLLAPSED = "collapsed"  # another one that was missed, too, fired for all of them
    MISSED = "missed"  # and the rule for catching up is `none`
    OUTSIDE_WINDOW = "outside-window"  # missed for longer than the window of catching up
    PAUSED = "paused"
    DELETED = "deleted"
    TOO_MANY = "too-many"  # missed when the schedule was changed, beyond what one act fires
    OVERLAP = "overlap"  # an earlier run had not ended


class OverlapPolicy(StrEnum):
    """What becomes of an instant while an earlier run of its schedule has not ended."""

    ALLOW = "allow"  # both run side by side
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"  # it waits; further ones are skipped
    BUFFER_ALL = "buffer_all"  # it waits, and so do further ones, in order
    CANCEL_OTHER = "cancel_other"  # the earlier one is cancelled, and it starts when that has ended


def checked_overlap(given: object) -> OverlapPolicy:
    try:
        return OverlapPolicy.ALLOW if given is None else OverlapPolicy(given)  # type: ignore[arg-type]  # whatever was given
    except ValueError:
        rule = f"must be one of {', '.join(OverlapPolicy)}"
        raise broken_rule("overlap", given, rule, code="invalid-overlap") from None


MOST_FAILURES = 1_000


def checked_failures(given: object) -> int | None:
    """After how many failures in a row a schedule is paused; None: never."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_FAILURES):
        return given
    rule = f"must be a whole number from 1 to {MOST_FAILURES:,}"
    raise broken_rule("pause_after_failures", given, rule, code="invalid-pause-after-failures")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp:
    """What happens to instants that were missed: those within the window, by the rule."""

    rule: CatchUpRule = CatchUpRule.LATEST
    window: timedelta = timedelta(days=1)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "rule", CatchUpRule(self.rule))
        except ValueError:
            raise broken_rule(
                "catch_up", self.rule, f"must be one of {', '.join(CatchUpRule)}", code="invalid-catch-up"
            ) from None
        if not isinstance(self.window, timedelta) or not timedelta(0) < self.window <= LONGEST_WINDOW:
            raise broken_rule(
                "window", str(self.window), "must be more than nothing and at most 366 days", code="invalid-catch-up"
            )


class Skipped(NamedTuple):
    """Instants that became no run of their own, from the first to the last of them."""

    first_at: datetime
    last_at: datetime
    reason: SkipReason


class Decision(NamedTuple):
    """What fires, what is skipped, and which instant is to be decided next: none, if the schedule is over."""

    fired: Occurrence | None
    following: Occurrence | None
    skipped: tuple[Skipped, ...] = ()


def decide(schedule: Schedule, name: str, catch_up: CatchUp, instant: Occurrence, now: datetime) -> Decision:
    """What becomes of `instant`, the first that nobody has decided, at `now` or shortly before it is due."""
    if now - instant.due_at <= ON_TIME:
        return Decision(instant, schedule.next_after(instant.nominal_at, job=name))
    missed = _Missed(schedule, name, instant, now, now - catch_up.window)
    match catch_up.rule:
        case CatchUpRule.LATEST:
            return missed.fire_latest()
        case CatchUpRule.EARLIEST:
            return missed.fire_earliest()
        case CatchUpRule.ALL:
            return missed.fire_next()
        case CatchUpRule.NONE:
            return missed.skip_all(SkipReason.MISSED)


def skip_until(schedule: Schedule, name: str, nominal_at: datetime, until: datetime, reason: SkipReason) -> Decision:
    """Nothing from `nominal_at` on fires before `until`."""
    last = _before_spread(schedule, name, schedule.prev_before(until, job=name), until)
    if last is None or last.nominal_at < nominal_at:
        return Decision(None, schedule.next_after(nominal_at - TICK, job=name))
    following = schedule.next_after(last.nominal_at, job=name)
    return Decision(None, following, (Skipped(nominal_at, last.nominal_at, reason),))


def _before_spread(schedule: Schedule, name: str, last: Occurrence | None, until: datetime) -> Occurrence | None:
    """The last instant that is due before `until`: of the very last, the spread may be still to come."""
    if last is None or last.due_at < until:
        return last
    return schedule.prev_before(last.nominal_at, job=name)  # no spread goes past the next instant


class _Missed:
    """The instants from the first that was missed to the last that is due."""

    def __init__(self, schedule: Schedule, name: str, first: Occurrence, now: datetime, window_at: datetime) -> None:
        self._schedule = schedule
        self._name = name
        self._first = first
        self._last = self._last_due(now)
        self._window_at = window_at

    def fire_latest(self) -> Decision:
        if self._last.nominal_at < self._window_at:
            return self.skip_all(SkipReason.OUTSIDE_WINDOW)
        collapsed = self._before(self._last, SkipReason.COLLAPSED)
        return Decision(self._last, self._after(self._last), collapsed)

    def fire_earliest(self) -> Decision:
        earliest = self._first_in_window()
        if earliest is None:
            return self.skip_all(SkipReason.OUTSIDE_WINDOW)
        collapsed: tuple[Skipped, ...] = ()
        second = self._after(earliest)
        if second is not None and second.nominal_at <= self._last.nominal_at:
            collapsed = (Skipped(second.nominal_at, self._last.nominal_at, SkipReason.COLLAPSED),)
        outside = self._before(earliest, SkipReason.OUTSIDE_WINDOW)
        return Decision(earliest, self._after(self._last), outside + collapsed)

    def fire_next(self) -> Decision:
        """One at a time: the others follow, each in a decision of its own."""
        earliest = self._first_in_window()
        if earliest is None:
            return self.skip_all(SkipReason.OUTSIDE_WINDOW)
        return Decision(earliest, self._after(earliest), self._before(earliest, SkipReason.OUTSIDE_WINDOW))

    def skip_all(self, reason: SkipReason) -> Decision:
        skipped = Skipped(self._first.nominal_at, self._last.nominal_at, reason)
        return Decision(None, self._after(self._last), (skipped,))

    def _last_due(self, now: datetime) -> Occurrence:
        last = self._schedule.prev_before(now + TICK, job=self._name)
        last = _before_spread(self._schedule, self._name, last, now + TICK)
        return self._first if last is None or last.nominal_at < self._first.nominal_at else last

    def _first_in_window(self) -> Occurrence | None:
        if self._first.nominal_at >= self._window_at:
            return self._first
        found = self._schedule.next_after(self._window_at - TICK, job=self._name)
        return None if found is None or found.nominal_at > self._last.nominal_at else found

    def _after(self, occurrence: Occurrence) -> Occurrence | None:
        return self._schedule.next_after(occurrence.nominal_at, job=self._name)

    def _before(self, occurrence: Occurrence, reason: SkipReason) -> tuple[Skipped, ...]:
        """All that was missed before this one."""
        if occurrence.nominal_at == self._first.nominal_at:
            return ()
        last = self._schedule.prev_before(occurrence.nominal_at, job=self._name)
        assert last is not None
        return (Skipped(self._first.nominal_at, last.nominal_at, reason),)
