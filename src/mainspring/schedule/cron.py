"""Cron expressions: five fields, or six with leading seconds; the day rule of Vixie cron."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mainspring.schedule.cron_fields import CronField, Hashed
from mainspring.schedule.cron_parser import read_fields
from mainspring.schedule.cron_pattern import CronPattern
from mainspring.schedule.walls import WallTimeline

if TYPE_CHECKING:
    from mainspring.schedule.timeline import Setting, Timeline

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@minutely": "* * * * *",
}


@dataclass(frozen=True)
class Cron:
    """A cron expression. `fields` are second, minute, hour, day of month, month and day of week."""

    fields: tuple[CronField, ...]

    @staticmethod
    def parse(text: str) -> Cron:
        return _parsed(MACROS.get(text.strip().lower(), text))

    @cached_property
    def text(self) -> str:
        """The canonical expression: six fields only when it needs seconds."""
        texts = [field.text for field in self.fields]
        return " ".join(texts[1:] if texts[0] == "0" else texts)

    @property
    def is_hashed(self) -> bool:
        return any(isinstance(each, Hashed) for field in self.fields for each in field.specials)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether Debian cron sees a wildcard job, which runs by elapsed time when the clock jumps."""
        return self.fields[1].star or self.fields[2].star

    def seconds_of_day(self) -> list[int]:
        """The times of day, in seconds since midnight."""
        second, minute, hour = (field.values for field in self.fields[:3])
        return [h * 3600 + m * 60 + s for h in hour for m in minute for s in second]

    def resolved(self, job: str) -> Cron:
        """The expression with the job's own numbers in place of H."""
        return Cron(tuple(field.resolved(job) for field in self.fields)) if self.is_hashed else self

    def timeline(self, setting: Setting) -> Timeline:
        cron = self.resolved(setting.job)
        return WallTimeline(CronPattern(cron.fields), setting, follows_elapsed_time=cron.follows_elapsed_time)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Cron:
    return Cron(read_fields(text))
