"""Times of day in words: `at 09:00 and 17:30`, `every 15 minutes from 08:00 through 17:45`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time, timedelta
from typing import TYPE_CHECKING

from mainspring.schedule.cron import Cron
from mainspring.schedule.cron_fields import SECOND, CronField
from mainspring.schedule.words.phrases import clock, every_span, listed, ordinal, step_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.schedule.cron_fields import Hashed

DAY = 86_400
FEW = 6  # so many times are simply named
MANY = 3_000  # more times than that are not looked at one by one
BY_NAME = "that the schedule's name decides"


@dataclass(frozen=True, slots=True)
class TimesPhrase:
    """The words, and whether they name times (`at …`) rather than say how often (`every …`)."""

    words: str
    names_times: bool


def times_phrase(crons: Sequence[Cron]) -> TimesPhrase:
    """When during a day. Several expressions that differ in their times only are said as one."""
    if len(crons) == 1:
        return _phrase_of_one(crons[0])
    seconds = sorted(set().union(*(cron.seconds_of_day() for cron in crons)))
    return _regular(seconds) or TimesPhrase(listed([_phrase_of_one(cron).words for cron in crons]), names_times=False)


def can_be_joined(crons: Sequence[Cron]) -> bool:
    """Whether the times of these expressions are few enough, and known."""
    return not any(cron.is_hashed for cron in crons) and sum(map(_count, crons)) <= MANY


def _phrase_of_one(cron: Cron) -> TimesPhrase:
    second, minute, hour = cron.fields[:3]
    if any(field.hashed for field in (second, minute, hour)):
        return _hashed_phrase(cron)
    if _count(cron) <= MANY:
        seconds = cron.seconds_of_day()
        regular = _regular(seconds) or (_named(seconds) if len(seconds) == len(hour.values) else None)
        if regular is not None:
            return regular
    return _irregular(second, minute, hour)


def _count(cron: Cron) -> int:
    second, minute, hour = cron.fields[:3]
    return len(second.values) * len(minute.values) * len(hour.values)


def _regular(seconds: Sequence[int]) -> TimesPhrase | None:
    """A few times by name; many with one distance by that distance."""
    if len(seconds) < 3:
        return _named(seconds)
    begun = _from_longest_pause(seconds)
    step = step_of(begun)
    if step is None:
        return _named(seconds) if len(seconds) <= FEW else None
    if step * len(seconds) == DAY:
        return TimesPhrase(_all_day(step, seconds[0]), names_times=False)
    if len(seconds) <= 3 and step >= 3600 * 2:
        return _named(seconds)
    return TimesPhrase(f"{_every(step)} from {_at(begun[0])} through {_at(begun[-1] % DAY)}", names_times=False)


def _named(seconds: Iterable[int]) -> TimesPhrase:
    return TimesPhrase(f"at {listed([_at(each) for each in seconds], 24)}", names_times=True)


def _from_longest_pause(seconds: Sequence[int]) -> list[int]:
    """The same times, told from the end of the longest pause: 22:00, 23:00, then 00:00 of the next day."""
    following = [*seconds[1:], seconds[0] + DAY]
    pauses = [after - before for before, after in zip(seconds, following, strict=True)]
    begin = (len(pauses) - 1 - pauses[::-1].index(max(pauses)) + 1) % len(seconds)
    return [*seconds[begin:], *(each + DAY for each in seconds[:begin])]


def _all_day(step: int, first: int) -> str:
    if first == 0:
        return f"{_every(step)}, on the hour" if step == 3600 else _every(step)
    if step == 3600:
        return f"every hour at {_past(first)} past the hour"
    if step < 3600 and 3600 % step == 0:
        return f"{_every(step)}, beginning at {_past(first)} past the hour"
    return f"{_every(step)} from {_at(first)} on"


def _past(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    words = f"{minutes} minute{'' if minutes == 1 else 's'}"
    return words if not rest else f"{words} and {rest} second{'' if rest == 1 else 's'}"


def _every(step: int) -> str:
    return every_span(timedelta(seconds=step))


def _at(second: int) -> str:
    return clock(time(second // 3600 % 24, second // 60 % 60, second % 60))


# ── times without one distance ──────────────────────────────────────────────────────────────────────────────


def _irregular(second: CronField, minute: CronField, hour: CronField) -> TimesPhrase:
    words = [_units(second, "second") if second.values != (0,) else "", _units(minute, "minute"), _hours(hour)]
    if minute.is_full and second.values != (0,):
        words[1] = "" if second.is_full or _is_step(second) else "of every minute"
    return TimesPhrase(" ".join(filter(None, words)), names_times=False)


def _is_step(field: CronField) -> bool:
    step = step_of(field.values)
    return step is not None and step * len(field.values) == 60


def _units(field: CronField, unit: str) -> str:
    """Seconds or minutes: `every 7 minutes from 0 through 56 past the hour`, `at 5 and 40 minutes past the hour`."""
    values, whole = field.values, "minute" if unit == "second" else "hour"
    if field.is_full:
        return f"every {unit}"
    step = step_of(values)
    if step is not None and len(values) > 2:
        often = f"every {unit}" if step == 1 else f"every {step} {unit}s"
        if step * len(values) == 60 and values[0] == 0:
            return often
        return f"{often} from {values[0]} through {values[-1]} {unit}s past the {whole}"
    plural = "" if values == (1,) else "s"
    return f"at {listed([str(value) for value in values])} {unit}{plural} past the {whole}"


def _hours(field: CronField) -> str:
    values = field.values
    if field.is_full:
        return ""
    begun = [each // 3600 for each in _from_longest_pause([value * 3600 for value in values])]
    step = step_of(begun)
    if step == 1 or len(values) == 1:
        return f"between {values[0] if len(values) == 1 else begun[0]:02}:00 and {begun[-1] % 24:02}:59"
    if step is not None and len(values) > 2:
        return f"in every {ordinal(step)} hour from {begun[0]:02}:00 to {begun[-1] % 24:02}:59"
    return f"in the hours of {listed([f'{value:02}:00' for value in values], 24)}"


# ── times that the schedule's name decides ─────────────────────────────────────────────────────────────────────────


def _hashed_phrase(cron: Cron) -> TimesPhrase:
    """`once an hour, at a minute that the schedule's name decides`; lists are told item by item."""
    second, minute, hour = cron.fields[:3]
    is_one_second = len(second.values) == 1 and not second.hashed
    if hour.hashed or minute.hashed:
        if not (is_one_second or _is_one(second)):
            return _item_by_item(second, minute, hour)
        if _is_alone(hour) and (_is_one(minute) or not minute.hashed):
            return _hashed_hour(hour.hashed[0], minute)
        if _is_alone(minute) and not hour.hashed:
            return _hashed_minute(minute.hashed[0], hour)
        return _item_by_item(second, minute, hour)
    if not _is_one(second):
        return _item_by_item(second, minute, hour)
    rest = _phrase_of_one(Cron((CronField(SECOND, (0,)), *cron.fields[1:])))
    return TimesPhrase(f"{rest.words}, at a second{_within(second.hashed[0])} {BY_NAME}", rest.names_times)


def _is_alone(field: CronField) -> bool:
    """Whether an H is all there is."""
    return len(field.items) == 1 and bool(field.hashed)


def _is_one(field: CronField) -> bool:
    """Whether it is one number that the schedule's name decides."""
    return _is_alone(field) and field.hashed[0].step is None


def _hashed_hour(hashed: Hashed, minute: CronField) -> TimesPhrase:
    between = _between(hashed)
    at = "a time" if minute.hashed else "an hour" if minute.values == (0,) else f"an hour, {_units(minute, 'minute')},"
    if hashed.step:
        return TimesPhrase(f"every {hashed.step} hours{between}, from {at} {BY_NAME}", names_times=False)
    return TimesPhrase(f"at {at}{between} {BY_NAME}", names_times=True)


def _hashed_minute(hashed: Hashed, hour: CronField) -> TimesPhrase:
    hours = f" {_hours(hour)}".rstrip()
    if hashed.step:
        return TimesPhrase(
            f"every {hashed.step} minutes{hours}, from a minute{_within(hashed)} {BY_NAME}", names_times=False
        )
    at = f"at a minute{_within(hashed)} {BY_NAME}"
    if len(hour.values) == 1:
        return TimesPhrase(f"{hours.strip()}, {at}", names_times=True)
    return TimesPhrase(f"once an hour{hours}, {at}", names_times=False)


def _item_by_item(second: CronField, minute: CronField, hour: CronField) -> TimesPhrase:
    """`at 5 minutes past the hour and at a minute that the schedule's name decides, between 08:00 and 08:59`."""
    seconds = "" if second == CronField(SECOND, (0,)) else _items(second, "second")
    return TimesPhrase(
        ", ".join(filter(None, (seconds, _items(minute, "minute"), _hour_items(hour)))), names_times=False
    )


def _items(field: CronField, unit: str) -> str:
    named = [_units(field, unit)] if field.values else []
    for each in field.hashed:
        one = f"a {unit}{_within(each)} {BY_NAME}"
        named.append(f"at {one}" if each.step is None else f"every {each.step} {unit}s from {one}")
    return " and ".join(named)


def _hour_items(hour: CronField) -> str:
    named = [_hours(hour)] if hour.values else []
    for each in hour.hashed:
        one = f"an hour{_between(each)} {BY_NAME}"
        named.append(f"in {one}" if each.step is None else f"in every {ordinal(each.step)} hour from {one}")
    return " and ".join(named)


def _between(hashed: Hashed) -> str:
    return "" if hashed.whole else f" between {hashed.first:02}:00 and {hashed.last:02}:59"


def _within(hashed: Hashed) -> str:
    return "" if hashed.whole else f" from {hashed.first} to {hashed.last}"
