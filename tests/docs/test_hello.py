"""The first application a newcomer reads does what its comments say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from examples import hello
from tests.waiting import PATIENCE

from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring


@pytest.fixture
async def app(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mainspring]:
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", url)
    yield hello.app
    await hello.app.close()


async def test_a_tick_submits_a_little_work(app: Mainspring) -> None:
    await app.schedules.apply()
    ticked = await hello.tick.submit()

    await run_until_idle(app)

    assert await ticked.result(timeout=PATIENCE) == "a tick by hand"
    assert len((await app.runs.list()).runs) == 5
    assert {each.name: each.words for each in await app.schedules.list()} == {
        "daily_report": "Every weekday at 09:00, Europe/Berlin time.",
        "tick": "Every 5 seconds, UTC.",
    }


async def test_a_greeting_greets(app: Mainspring) -> None:
    handle = await hello.greet.submit("Ada")

    await run_until_idle(app)

    assert await handle.result(timeout=PATIENCE) == "Hello, Ada!"
