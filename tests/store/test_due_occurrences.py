"""A handler knows when its occurrence was due: spread over a while, retried, made up for, or run again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring import Context, RetryPolicy
from mainspring.testing import run_until_idle

from .scheduling import HOUR, LANES, MINUTE, NEW_YEAR

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

from mainspring.wiring.scheduler import lane_firer

Seen = list[tuple["datetime", "datetime", int]]


def telling(app: Mainspring, seen: Seen, failures: int = 0) -> Job[[], None]:
    """A job that tells what its handler knows, and fails a few times."""

    @app.job(name="tell", retry=RetryPolicy(max_attempts=5, first_delay=HOUR))
    async def tell(context: Context) -> None:
        occurrence = context.occurrence
        assert occurrence is not None
        seen.append((occurrence.nominal_at, occurrence.due_at, context.attempt))
        assert context.attempt > failures, "not yet"

    return tell


async def fire(connection: Connection, clock: FrozenClock, *, packs: bool = True) -> None:
    for lane in range(LANES):
        await lane_firer(clock).fire(connection, lane, 0.0, packs=packs)


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("spread", [None, 40 * MINUTE])
async def test_the_due_instant_is_that_of_the_ledger_at_every_attempt(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, packs: bool, spread: timedelta | None
) -> None:
    seen: Seen = []
    made = await telling(frozen_app, seen, failures=2).scheduled("daily", "0 1 * * *", spread=spread).create()
    assert made.next_at is not None
    assert made.next_due_at is not None

    await clock.set(made.next_due_at)
    await fire(connection, clock, packs=packs)
    for _ in range(3):
        await run_until_idle(frozen_app)
        await clock.advance(10 * HOUR)

    assert (made.next_due_at > made.next_at) is (spread is not None)
    assert seen == [(made.next_at, made.next_due_at, attempt) for attempt in (1, 2, 3)]


async def test_a_run_that_makes_up_for_the_past_or_is_run_again_knows_it_too(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    seen: Seen = []
    await clock.advance(2 * HOUR + 30 * MINUTE)
    await telling(frozen_app, seen).scheduled("hourly", "0 * * * *", spread=20 * MINUTE).create()

    await frozen_app.schedules.backfill("hourly", since=NEW_YEAR + HOUR)
    await run_until_idle(frozen_app)
    await clock.advance(HOUR)
    await fire(connection, clock)
    await run_until_idle(frozen_app)
    await frozen_app.schedules.backfill("hourly", since=NEW_YEAR + HOUR, which="all")
    await run_until_idle(frozen_app)

    ledger = [(each.nominal_at, each.due_at, 1) for each in reversed(await frozen_app.schedules.history("hourly"))]
    assert all(due_at is not None and due_at > nominal_at for nominal_at, due_at, _ in ledger)
    assert sorted(seen) == sorted(ledger * 2)
