"""The first application a newcomer reads does what its comments say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from examples import hello
from tests.waiting import PATIENCE

from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import asyncpg

    from mainspring import Mainspring

DUE_AT = datetime(2100, 1, 1, 12, 0, 3, tzinfo=UTC)


@pytest.fixture
async def app(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mainspring]:
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", url)
    yield hello.app
    await hello.app.close()


async def test_ticks_started_twice_continue_as_one(
    app: Mainspring, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    await hello.tick.submit(DUE_AT)
    await hello.tick.submit(DUE_AT)

    await run_until_idle(app)

    rows = await connection.fetch("select due_at from later where idempotency_key like 'tick %'")
    assert [row["due_at"] for row in rows] == [datetime(2100, 1, 1, 12, 0, 5, tzinfo=UTC)]


async def test_a_greeting_greets(app: Mainspring) -> None:
    handle = await hello.greet.submit("Ada")

    await run_until_idle(app)

    assert await handle.result(timeout=PATIENCE) == "Hello, Ada!"


def test_the_next_tick_is_always_later() -> None:
    full = datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)

    assert hello.full_five_seconds_after(full) == datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
    assert hello.full_five_seconds_after(full.replace(microsecond=1)) == datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)
