"""How long an attempt may take, from what its job, its run and the time since its first start say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import AttemptTimedOut
from mainspring.model.policy import MICROSECOND, NO_OVERRIDES, Overrides
from mainspring.store.instants import UNIX_TO_POSTGRES

if TYPE_CHECKING:
    from mainspring.model.job import JobDefinition
    from mainspring.store.instants import Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """What sets a run apart from a plain first attempt: see `special_of` in the schema."""

    crashes: int = 0
    first_started_at: int | None = None  # microseconds since 1970
    overrides: Overrides | None = None

    def first_start(self, now: Micros) -> int:
        """When the run started first, in microseconds since 2000: now, if it never did."""
        return now[0] if self.first_started_at is None else self.first_started_at - UNIX_TO_POSTGRES


PLAIN = Special()
_special = msgspec.json.Decoder(Special)


def special_of(text: str | None) -> Special:
    return PLAIN if text is None else _special.decode(text)


@dataclass(slots=True, kw_only=True)
class Limit:
    """How long an attempt may take."""

    seconds: float
    run_ends_at: int | None = None  # when the run's own time is up, in microseconds since 2000
    is_last: bool = False  # it is the run's time that runs out first
    exceeded: AttemptTimedOut | None = None  # once the time is up

    def exceed(self) -> None:
        if self.is_last:
            error = AttemptTimedOut("The run's time is up, counted from its first start.", code="run-timed-out")
        else:
            error = AttemptTimedOut(f"The attempt took longer than {self.seconds:g} s.")
        self.exceeded = error

    def leaves_time_until(self, due: int) -> bool:
        """Whether the run's time is not up yet at that instant."""
        return self.run_ends_at is None or due < self.run_ends_at


def limit_of(definition: JobDefinition, special: Special, now: Micros) -> Limit | None:
    """The attempt's own timeout, or what is left of the run's if that is less."""
    overrides = special.overrides or NO_OVERRIDES
    timeout = overrides.timeout or definition.timeout
    run_timeout = overrides.run_timeout or definition.run_timeout
    seconds = None if timeout is None else timeout.total_seconds()
    if run_timeout is None:
        return None if seconds is None else Limit(seconds=seconds)
    run_ends_at = special.first_start(now) + run_timeout // MICROSECOND
    left = (run_ends_at - now[0]) / 1_000_000
    if seconds is None or left <= seconds:
        return Limit(seconds=left, run_ends_at=run_ends_at, is_last=True)
    return Limit(seconds=seconds, run_ends_at=run_ends_at)
