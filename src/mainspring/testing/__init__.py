"""For tests of applications, and of Mainspring itself: a clock that stands still, runs without a worker, no waiting.

clock = FrozenClock()
app = Mainspring(url_of_a_test_database, clock=clock)
await clock.freeze(app)                          # now SQL and Python agree, and only you move them

await send_invoice.options(delay=timedelta(hours=1)).submit(number=7)
assert await run_until_idle(app) == {}           # not due yet
await clock.advance(timedelta(hours=1))
assert await run_until_idle(app) == {"succeeded": 1}

await assert_submitted(send_invoice, number=7, times=1)

fired = await travel(app, timedelta(days=365))   # a year passes, and schedules fire
assert [each.schedule for each in fired] == ["send_invoices"] * 12

with inline(app):                                # no database at all
    handle = await send_invoice.submit(number=8)
    assert await handle.result() == "sent"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.errors import NotIdle
    from mainspring.testing.assertions import (
        Submission,
        assert_not_submitted,
        assert_not_submitted_sync,
        assert_submitted,
        assert_submitted_sync,
        submissions,
        submissions_sync,
    )
    from mainspring.testing.frozen import FrozenClock
    from mainspring.testing.idle import run_until_idle, run_until_idle_sync
    from mainspring.testing.inlining import inline
    from mainspring.testing.travelling import FiredOccurrence, travel, travel_sync

# Imported when first used: pytest loads this package at its start, whether or not a test needs it.
_HOMES = {
    "FiredOccurrence": "travelling",
    "FrozenClock": "frozen",
    "NotIdle": "idle",
    "Submission": "assertions",
    "assert_not_submitted": "assertions",
    "assert_not_submitted_sync": "assertions",
    "assert_submitted": "assertions",
    "assert_submitted_sync": "assertions",
    "inline": "inlining",
    "run_until_idle": "idle",
    "run_until_idle_sync": "idle",
    "submissions": "assertions",
    "submissions_sync": "assertions",
    "travel": "travelling",
    "travel_sync": "travelling",
}

__all__ = [
    "FiredOccurrence",
    "FrozenClock",
    "NotIdle",
    "Submission",
    "assert_not_submitted",
    "assert_not_submitted_sync",
    "assert_submitted",
    "assert_submitted_sync",
    "inline",
    "run_until_idle",
    "run_until_idle_sync",
    "submissions",
    "submissions_sync",
    "travel",
    "travel_sync",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
