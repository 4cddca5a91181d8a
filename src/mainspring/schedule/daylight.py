"""What happens to walls that never come, and to those that come twice."""

from __future__ import annotations

from enum import StrEnum


class GapPolicy(StrEnum):
    """The clock jumps from 02:00 to 03:00; what becomes of 02:30?"""

    AS_CRON = "as-cron"  # Debian cron's rule: fixed times run right after the gap; wildcards follow elapsed time
    RUN_AFTER = "run-after"  # at 03:00, once for the whole gap
    SHIFT = "shift"  # at 03:30
    SKIP = "skip"  # not at all


class RepeatPolicy(StrEnum):
    """The clock jumps from 03:00 to 02:00; which 02:30 is meant?"""

    AS_CRON = "as-cron"  # Debian cron's rule: fixed times run once, the first time; wildcards follow elapsed time
    FIRST = "first"
    SECOND = "second"
    BOTH = "both"
