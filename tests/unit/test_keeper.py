"""A keeper that cannot ask the database lets its duties begin anew."""

from __future__ import annotations

from typing import Any

import pytest

from mainspring.errors import DatabaseBusy, DatabaseUnreachable
from mainspring.keeper.keeper import AFTER_FAILURE_SECONDS, Keeper

from .hands import HandClock


class Watcher:
    """A duty that counts for how many looks in a row it could see."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.seen = 0

    async def step(self, connection: Any) -> float:
        if self.fault is not None:
            raise self.fault
        self.seen += 1
        return 5.0

    def forget(self) -> None:
        self.seen = 0


class Link:
    """To a database that is there, or not."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.mended = 0

    async def get(self) -> Any:
        if self.fault is not None:
            raise self.fault
        return Answering()

    async def mend(self, error: BaseException) -> None:
        self.mended += 1


class Answering:
    answer_seconds = 1.0


@pytest.mark.invariant(6)
async def test_what_was_seen_before_an_outage_no_longer_counts() -> None:
    link, watcher = Link(), Watcher()
    keeper = Keeper(link=link, clock=HandClock(), duties=[watcher])  # type: ignore[arg-type]
    assert [await keeper._try(watcher) for _ in range(3)] == [5.0] * 3
    link.fault = DatabaseUnreachable("away")
    await keeper._try(watcher)

    assert (watcher.seen, link.mended) == (0, 1)


@pytest.mark.invariant(6)
async def test_a_fault_of_one_duty_makes_all_of_them_begin_anew() -> None:
    link, busy, watcher = Link(), Watcher(DatabaseBusy("locked")), Watcher()
    keeper = Keeper(link=link, clock=HandClock(), duties=[busy, watcher])  # type: ignore[arg-type]
    await keeper._try(watcher)

    assert await keeper._try(busy) == AFTER_FAILURE_SECONDS
    assert watcher.seen == 0
