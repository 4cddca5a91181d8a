"""Cron expressions: five fields, six with leading seconds, or seven with a year at the end as well.

Our own calculator and not cronsim's, which answers in instants by one fixed policy: other policies need walls in both
directions, and nW, L-3, H, years and wrap-around ranges are missing there. It is an oracle in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mainspring.schedule.cron_hash import resolve
from mainspring.schedule.cron_parser import read_fields
from mainspring.schedule.cron_pattern import CronPattern
from mainspring.schedule.walls import WallTimeline

if TYPE_CHECKING:
    from mainspring.schedule.cron_fields import CronField
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
    """A cron expression. `fields` are second, minute, hour, day of month, month, day of week and year."""

    fields: tuple[CronField, ...]

    @staticmethod
    def parse(text: str) -> Cron:
        return _parsed(MACROS.get(text.strip().lower(), text))

    @cached_property
    def text(self) -> str:
        """The canonical expression: seven fields only when it needs years, and six only when it needs seconds."""
        *texts, year = [field.text for field in self.fields]
        if not self.fields[-1].is_full:
            return " ".join([*texts, year])
        return " ".join(texts[1:] if texts[0] == "0" else texts)

    @property
    def is_hashed(self) -> bool:
        return any(field.hashed for field in self.fields)

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
        return Cron(resolve(self.fields, job)) if self.is_hashed else self

    def timeline(self, setting: Setting) -> Timeline:
        cron = self.resolved(setting.job)
        return WallTimeline(CronPattern(cron.fields), setting, follows_elapsed_time=cron.follows_elapsed_time)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Cron:
    return Cron(read_fields(text))
