"""One clause: what was said of when, day, time and bounds. `parts.py` reads it, `checks.py` says what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from mainspring.schedule.english.exclusions import NOTHING, Exclusion
from mainspring.schedule.english.vocabulary import PARTS_OF_DAY, PartOfDay

if TYPE_CHECKING:
    from datetime import date, time, timedelta

    from mainspring.schedule.english.bounds import End, Length
    from mainspring.schedule.english.days import Days
    from mainspring.schedule.english.reader import Token
    from mainspring.schedule.english.repeats import Repeat
    from mainspring.schedule.english.times import TimeWindow


@dataclass(slots=True)
class Clause:
    """What was read so far. `begins` is where in the text."""

    begins: int
    repeat: Repeat | None = None
    days: Days | None = None
    day: date | None = None
    delay: timedelta | None = None
    times: list[time] | None = None
    minutes_past: list[int] | None = None
    window: TimeWindow | None = None
    part_of_day: Token | None = None
    months: frozenset[int] | None = None
    without: Exclusion = NOTHING
    counted_from: tuple[date, time | None] | None = None
    offset: int | None = None  # seconds after the full hour or day with which steps begin
    starts: tuple[date, time | None] | None = None
    steps_from: tuple[date, time | None] | None = None  # where it starts, if steps begin there
    ends: End | None = None
    lasts: Length | None = None
    runs: int | None = None
    once: Token | None = None  # the word
    where_there_is_one: bool = False  # months without such a day are left out
    said: dict[str, tuple[Token, Token]] = field(default_factory=dict, compare=False)  # of each part, where it stands

    @property
    def unit(self) -> str | None:
        """Every … this."""
        return None if self.repeat is None else self.repeat.unit

    @property
    def count(self) -> int:
        """Every so many of them."""
        return 1 if self.repeat is None else self.repeat.count

    def span_of(self, *parts: str) -> tuple[Token, Token] | None:
        """The first and the last word of some parts, if they stand side by side; of those that were said."""
        spans = sorted((self.said[part] for part in parts if part in self.said), key=lambda span: span[0].at)
        gaps = any(after[0].place != before[1].place + 1 for before, after in pairwise(spans))
        return None if gaps or not spans else (spans[0][0], spans[-1][1])

    @property
    def has_dates(self) -> bool:
        """Whether its days are those of months or years, and not of weeks."""
        days = self.days
        return days is not None and bool(days.of_month or days.weekdays_of_month or days.dates)

    @property
    def has_exception(self) -> bool:
        return self.without != NOTHING

    @property
    def is_quarterly(self) -> bool:
        return self.unit == "quarter" or (self.days is not None and self.days.of_quarter)

    @property
    def is_within_days(self) -> bool:
        return self.unit in ("second", "minute", "hour")

    @property
    def recurs(self) -> bool:
        return self.day is None and self.delay is None

    @property
    def part(self) -> PartOfDay | None:
        return None if self.part_of_day is None else PARTS_OF_DAY[self.part_name]

    @property
    def part_name(self) -> str:
        assert self.part_of_day is not None
        word = self.part_of_day.text
        return "night" if word in ("nightly", "tonight") else word.removesuffix("s")

    @property
    def anchor(self) -> tuple[date, time | None] | None:
        """What steps and every other … are counted from."""
        return self.counted_from or self.starts

    @property
    def first_step(self) -> time | None:
        """The time of day with which steps begin, where one was said with a date."""
        begins = self.counted_from or self.steps_from
        return None if begins is None else begins[1]
