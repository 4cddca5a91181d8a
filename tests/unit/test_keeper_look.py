"""One look serves all duties of a keeper, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mainspring.keeper.look import IDLE_EVERY, MOST_SECONDS, Look, LookFor
from mainspring.store import runs

from .hands import HandClock

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

NOTHING: Any = None  # no connection is needed


class Bench:
    """A look, and what is there to be found."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there: list[dict[str, Any]] = []
        self.looks = 0
        self.clock = HandClock()
        self.look = Look(lanes=8, clock=self.clock)
        monkeypatch.setattr(runs, "lanes_to_keep", self._lanes_to_keep)

    async def _lanes_to_keep(self, connection: Connection, lanes: int) -> list[dict[str, Any]]:
        self.looks += 1
        return list(self.there)

    def put(self, lane: int, *what: LookFor) -> None:
        self.there.append({"lane": lane} | {each.value: each in what for each in LookFor})


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


async def test_one_look_tells_each_duty_its_lanes(bench: Bench) -> None:
    bench.put(5, LookFor.GATES, LookFor.HELD)
    bench.put(2, LookFor.GATES)

    found = {what: await bench.look.lanes(NOTHING, what) for what in LookFor}

    assert found[LookFor.GATES] == [2, 5]
    assert found[LookFor.HELD] == [5]
    assert found[LookFor.DEPENDENCIES] == []
    assert bench.looks == 1


async def test_a_duty_that_comes_again_looks_anew(bench: Bench) -> None:
    await bench.look.lanes(NOTHING, LookFor.GATES)
    bench.put(3, LookFor.GATES)

    assert await bench.look.lanes(NOTHING, LookFor.GATES) == [3]
    assert bench.looks == 2


async def test_what_was_found_long_ago_is_not_used(bench: Bench) -> None:
    await bench.look.lanes(NOTHING, LookFor.GATES)
    bench.put(3, LookFor.HELD)
    bench.clock.now += MOST_SECONDS + 0.01

    assert await bench.look.lanes(NOTHING, LookFor.HELD) == [3]


async def test_who_hears_that_something_happened_does_not_use_an_older_look(bench: Bench) -> None:
    await bench.look.lanes(NOTHING, LookFor.GATES)
    bench.put(3, LookFor.DEPENDENCIES)
    bench.look.forget()

    assert await bench.look.lanes(NOTHING, LookFor.DEPENDENCIES) == [3]


async def test_what_is_heard_of_during_a_look_is_looked_for_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def looked_too_early(connection: Connection, lanes: int) -> list[dict[str, Any]]:
        found = await bench._lanes_to_keep(connection, lanes)
        bench.put(3, LookFor.DEPENDENCIES)
        bench.look.forget()
        return found

    monkeypatch.setattr(runs, "lanes_to_keep", looked_too_early)
    await bench.look.lanes(NOTHING, LookFor.GATES)

    assert await bench.look.lanes(NOTHING, LookFor.DEPENDENCIES) == [3]


async def test_where_there_is_nothing_at_all_looks_are_further_apart(bench: Bench) -> None:
    await bench.look.lanes(NOTHING, LookFor.GATES)
    assert bench.look.pause(0.5) == IDLE_EVERY

    bench.put(3, LookFor.HELD)
    await bench.look.lanes(NOTHING, LookFor.GATES)
    assert bench.look.pause(0.5) == 0.5
