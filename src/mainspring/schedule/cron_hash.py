"""What H means for one job.

The rule: a job's id picks one of the choices of each H, evenly over all jobs and for ever. What cannot happen is not
picked: if nothing would ever fire with a choice (31 in a month without a 31st, 30 February, a weekday that the date of
a single year does not have), the job gets one of the choices that are left, again by its id; other jobs keep theirs.
Months are picked first, then weekdays, then days, each with all that may still be picked for the others, so that H in
several fields agrees. Calendars and bounds play no part: what they leave over is asked of each job (`never_fires`).
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import DAY, MONTH, UNITS, WEEKDAY, CronField
from mainspring.schedule.cron_pattern import CronPattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.schedule.cron_fields import Hashed, Unit

Fields = tuple[CronField, ...]
_ORDER = [UNITS.index(unit) for unit in (MONTH, WEEKDAY, DAY)]  # times of day come on every day: any order will do
_ORDER += [place for place in range(len(UNITS)) if place not in _ORDER]
_BEFORE_ALL_YEARS = datetime(1969, 12, 31, 23, 59, 59)  # noqa: DTZ001 - a wall


def resolve(fields: Fields, job: str) -> Fields:
    """The fields with the job's own numbers in place of H."""
    for place in _ORDER:
        if fields[place].hashed:
            fields = _put(fields, place, _picked(fields, place, job))
    return fields


def is_even(fields: Fields) -> bool:
    """Whether H stands for times of day, and alone in its fields: then jobs as a whole fall evenly on its choices."""
    hashed = [place for place, field in enumerate(fields) if field.hashed]
    alone = all(len(fields[place].hashed) == 1 and not fields[place].values for place in hashed)
    return bool(hashed) and alone and hashed[-1] < UNITS.index(DAY)


def all_choices(fields: Fields) -> tuple[Fields, list[int]]:
    """The fields with all that H may become; and of each H, how many choices there are: a job has one of them."""
    numbers = []
    for place, field in enumerate(fields):
        if field.hashed:
            choices = [each.choices(field.unit) for each in field.hashed]
            numbers.append(len(choices[0]))
            fields = _put(fields, place, (n for some in choices for choice in some for n in choice))
    return fields, numbers


def _picked(fields: Fields, place: int, job: str) -> list[int]:
    field = fields[place]
    number = _number_of(field.unit, job)
    return [value for each in field.hashed for value in _choice(fields, place, each, number)]


def _choice(fields: Fields, place: int, hashed: Hashed, number: int) -> tuple[int, ...]:
    choices = hashed.choices(fields[place].unit)
    number, at = divmod(number, len(choices))
    if place < UNITS.index(DAY) or _comes(fields, place, choices[at]):
        return choices[at]
    possible = [each for each in choices if _comes(fields, place, each)]
    return possible[number % len(possible)] if possible else choices[at]


def _number_of(unit: Unit, job: str) -> int:
    digest = hashlib.blake2b(f"{unit.name}\0{job}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)


@lru_cache(maxsize=4096)
def _comes(fields: Fields, place: int, choice: tuple[int, ...]) -> bool:
    """Whether anything ever fires with this choice alone in its field, whatever the other H become."""
    alone = replace(fields[place], values=tuple(sorted(choice)), specials=())
    fields = (*fields[:place], alone, *fields[place + 1 :])
    return CronPattern(all_choices(fields)[0]).next_wall(_BEFORE_ALL_YEARS) is not None


def _put(fields: Fields, place: int, numbers: Iterable[int]) -> Fields:
    """The fields, one of them with numbers in place of its H."""
    field = fields[place]
    plain = CronField(field.unit, tuple(sorted({*field.values, *numbers})), field.others, field.star)
    return (*fields[:place], plain, *fields[place + 1 :])
