"""Schedules made of schedules: a union fires whenever one of its parts does; an exclusion where the other does not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.faults import broken_rule
from mainspring.schedule.instants import Instants, ListedTimeline
from mainspring.schedule.interval import Interval
from mainspring.schedule.rule import Rule
from mainspring.schedule.timeline import step
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import hour_around

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from mainspring.errors import InvalidSchedule
    from mainspring.schedule.timeline import Setting, Timeline

MAX_PARTS = 64
MAX_DEPTH = 8


@dataclass(frozen=True)
class Union:
    """Whenever one of the parts fires; once when several do. Nested unions are one; the order of parts says nothing."""

    parts: tuple[When, ...]

    def __post_init__(self) -> None:
        if len(self.parts) > MAX_PARTS:
            raise _too_many(len(self.parts))
        flat = [each for part in self.parts for each in (part.parts if isinstance(part, Union) else (part,))]
        unique = {each.text: each for each in flat}
        if not 2 <= len(unique) <= MAX_PARTS:
            raise _too_many(len(unique))
        object.__setattr__(self, "parts", tuple(unique[text] for text in sorted(unique)))
        _check_depth(self)

    @cached_property
    def text(self) -> str:
        return " | ".join(_grouped(part) for part in self.parts)

    def timeline(self, setting: Setting) -> Timeline:
        return UnionTimeline([part.timeline(setting) for part in self.parts])


@dataclass(frozen=True)
class Except:
    """When `base` fires and `minus` does not."""

    base: When
    minus: When

    def __post_init__(self) -> None:
        _check_depth(self)

    @cached_property
    def text(self) -> str:
        return f"{_grouped(self.base)} but not {_grouped(self.minus)}"

    def timeline(self, setting: Setting) -> Timeline:
        if self.base == self.minus:
            return ListedTimeline(())  # nothing is left, and nobody has to search for it
        zone = setting.zone if _excludes_whole_hours(self.base, self.minus) else None
        return ExceptTimeline(self.base.timeline(setting), self.minus.timeline(setting), zone)


When = Cron | Interval | Instants | Rule | Union | Except


def union_of(parts: list[When]) -> When:
    """The union of some forms; one alone is itself."""
    unique = {part.text: part for part in parts[: MAX_PARTS + 1]}
    return Union(tuple(parts)) if len(unique) != 1 or len(parts) > MAX_PARTS else parts[0]


def forms_of(when: When) -> Iterator[Cron | Interval | Instants | Rule]:
    """The forms that are no sets, of which a form is made."""
    match when:
        case Union(parts):
            for part in parts:
                yield from forms_of(part)
        case Except(base, minus):
            yield from forms_of(base)
            yield from forms_of(minus)
        case _:
            yield when


def _grouped(when: When) -> str:
    return f"({when.text})" if isinstance(when, (Union, Except)) else when.text


def _depth(when: When) -> int:
    match when:
        case Union(parts):
            return 1 + max(map(_depth, parts))
        case Except(base, minus):
            return 1 + max(_depth(base), _depth(minus))
        case _:
            return 0


def _check_depth(when: When) -> None:
    if _depth(when) > MAX_DEPTH:
        raise broken_rule(
            "schedule", "nested sets", f"must be nested at most {MAX_DEPTH} deep", code="schedule-too-large"
        )


def _too_many(count: int) -> InvalidSchedule:
    rule = f"must have 2 to {MAX_PARTS} different parts"
    return broken_rule("union", f"{count} parts", rule, code="schedule-too-large")


class UnionTimeline:
    def __init__(self, parts: list[Timeline]) -> None:
        self._parts = parts

    def next_after(self, instant: datetime) -> datetime | None:
        return min(filter(None, (part.next_after(instant) for part in self._parts)), default=None)

    def prev_before(self, instant: datetime) -> datetime | None:
        return max(filter(None, (part.prev_before(instant) for part in self._parts)), default=None)


def _excludes_whole_hours(base: When, minus: When) -> bool:
    """Whether all that is left of an hour is excluded when one instant in it is: `* * * * *` but not in December."""
    parts = minus.parts if isinstance(minus, Union) else (minus,)
    seconds = [set(part.fields[0].values) for part in parts if isinstance(part, Cron) and part.fields[1].is_full]
    if len(seconds) < len(parts):
        return False
    common = set.intersection(*seconds)
    return all(_is_within(form, common) for form in forms_of(base))


def _is_within(form: Cron | Interval | Instants | Rule, seconds: set[int]) -> bool:
    """Whether it is due at these seconds of a minute only, and never between two of them."""
    if isinstance(form, Cron):
        return seconds.issuperset(form.fields[0].values)
    if not isinstance(form, Interval) or form.anchor is None:
        return False
    return len(seconds) == 60 and not (form.anchor.microsecond or form.elapsed.microseconds)


class ExceptTimeline:
    """`zone` is given when exclusions come in whole hours: then they are passed over hour by hour."""

    def __init__(self, base: Timeline, minus: Timeline, zone: ZoneInfo | None = None) -> None:
        self._base, self._minus, self._zone = base, minus, zone

    def next_after(self, instant: datetime) -> datetime | None:
        candidate = self._base.next_after(instant)
        while candidate is not None and self._is_excluded(candidate):
            passed = candidate if self._zone is None else max(candidate, hour_around(self._zone, candidate)[1] - TICK)
            candidate = self._base.next_after(passed)
        return candidate

    def prev_before(self, instant: datetime) -> datetime | None:
        candidate = self._base.prev_before(instant)
        while candidate is not None and self._is_excluded(candidate):
            passed = candidate if self._zone is None else hour_around(self._zone, candidate)[0]
            candidate = self._base.prev_before(passed)
        return candidate

    def _is_excluded(self, candidate: datetime) -> bool:
        step()
        return self._minus.next_after(candidate - TICK) == candidate
