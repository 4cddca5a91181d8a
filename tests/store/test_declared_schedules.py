"""Processes of two versions of the code start side by side: what they declare takes effect once, and nothing flips."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring
from mainspring.control.declared import DeclaredSchedules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

OLD, NEW = "every day at 09:00", "every day at 10:00"


@pytest.fixture
async def starting(url: str, clock: FrozenClock, frozen_app: Mainspring) -> AsyncIterator[Callable[[str], Mainspring]]:
    """A process whose code declares this schedule."""
    apps: list[Mainspring] = []

    def starting(when: str) -> Mainspring:
        app = Mainspring(url, clock=clock)
        app.job(name="report", schedule=when)(report)
        apps.append(app)
        return app

    yield starting
    for app in apps:
        await app.close()


async def report() -> None: ...


async def in_force(app: Mainspring) -> tuple[str, int]:
    found = await app.schedules.find("report")
    return found.when, found.version


@pytest.mark.parametrize("remembers", [True, False], ids=["", "control"])
async def test_old_and_new_processes_that_start_in_turn_do_not_flip_a_schedule(
    starting: Callable[[str], Mainspring], monkeypatch: pytest.MonkeyPatch, *, remembers: bool
) -> None:
    if not remembers:
        monkeypatch.setattr(DeclaredSchedules, "_was_before", _never_before)
    processes = [starting(when) for when in (OLD, NEW, OLD, NEW, OLD)]
    for each in processes:
        await each.schedules.apply()
    assert await in_force(processes[0]) == (("0 10 * * *", 2) if remembers else ("0 9 * * *", 5))


async def _never_before(*_: object) -> bool:
    return False


async def test_ten_processes_that_start_together_make_one_schedule(
    starting: Callable[[str], Mainspring], connection: Connection
) -> None:
    processes = [starting(OLD) for _ in range(10)]
    await asyncio.gather(*(each.schedules.apply() for each in processes))
    assert await in_force(processes[0]) == ("0 9 * * *", 1)
    assert await connection.fetchval("select count(*) from audit where action like 'schedule.%'") == 1


@pytest.mark.parametrize("there_before", [True, False], ids=["changed", "added"])
async def test_an_old_process_that_compared_before_others_acted_brings_nothing_back(
    starting: Callable[[str], Mainspring], monkeypatch: pytest.MonkeyPatch, *, there_before: bool
) -> None:
    """It found a schedule to make or change; before it does so, its like and then the new version have started."""
    if there_before:
        await starting("every day at 08:00").schedules.apply()
    late, like, newer = starting(OLD), starting(OLD), starting(NEW)
    declared = (await late.services()).declared
    compare, others = declared.compare, [like, newer]

    async def compare_and_stop(*question: Any, **options: Any) -> Any:
        found = await compare(*question, **options)
        while others:
            await others.pop(0).schedules.apply()
        return found

    monkeypatch.setattr(declared, "compare", compare_and_stop)
    await late.schedules.apply()
    assert await in_force(newer) == ("0 10 * * *", 3 if there_before else 2)
