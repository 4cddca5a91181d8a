"""How long an attempt may take, when it is told, and what the supervisor hears about it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from mainspring.model.job import JobDefinition
from mainspring.store.instants import UNIX_TO_POSTGRES
from mainspring.worker import time_limits
from mainspring.worker.time_limits import NEVER, Timekeeper, TimeLimit, limit_of, special_of

from .hands import HandClock

if TYPE_CHECKING:
    from mainspring.worker.work import Work

NOW = 800_000_000_000_000  # microseconds since 2000


def limit(special: dict[str, Any] | None = None, **definition: Any) -> TimeLimit | None:
    text = None if special is None else msgspec.json.encode(special).decode()
    spans: dict[str, Any] = {name: timedelta(seconds=seconds) for name, seconds in definition.items()}
    return limit_of(JobDefinition(name="j", **spans), special_of(text), (NOW,))


def started(seconds_ago: float) -> dict[str, Any]:
    return {"crashes": 0, "overrides": None, "first_started_at": NOW + UNIX_TO_POSTGRES - int(seconds_ago * 1_000_000)}


@pytest.mark.parametrize(
    ("definition", "special", "seconds", "is_last"),
    [
        ({"timeout": 5}, None, 5, False),
        ({"run_timeout": 60}, None, 60, True),
        ({"timeout": 5, "run_timeout": 60}, None, 5, False),
        ({"timeout": 60, "run_timeout": 5}, None, 5, True),
        ({"timeout": 5}, started(100), 5, False),  # each attempt has its own
        ({"run_timeout": 60}, started(45), 15, True),  # all attempts have one together
        ({"timeout": 20, "run_timeout": 60}, started(45), 15, True),
        ({"timeout": 10, "run_timeout": 60}, started(45), 10, False),
        ({"run_timeout": 60}, started(61), -1, True),  # over before it begins
        ({}, {"overrides": {"timeout": "PT3S"}}, 3, False),
        ({"timeout": 5}, {"overrides": {"timeout": "PT3S"}}, 3, False),
        ({"timeout": 5}, {"overrides": {"run_timeout": "PT3S"}}, 3, True),
        ({"timeout": 5}, {"overrides": {"colour": "blue"}}, 5, False),  # from a newer program
    ],
)
def test_how_long_an_attempt_may_take(
    definition: dict[str, float], special: dict[str, Any] | None, seconds: float, is_last: bool
) -> None:
    found = limit(special, **definition)

    assert found is not None
    assert (found.seconds, found.is_last) == (seconds, is_last)


@pytest.mark.parametrize("special", [None, {"crashes": 3}, started(100), {"overrides": {}}])
def test_without_a_timeout_there_is_no_limit(special: dict[str, Any] | None) -> None:
    assert limit(special) is None


@pytest.mark.parametrize("overrides", [{"timeout": "soon"}, {"retry": {"max_attempts": 0}}, {"retry": 3}, []])
def test_policies_that_cannot_be_read_are_an_error_and_no_guess(overrides: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        limit({"overrides": overrides})


def test_what_ran_out_is_said() -> None:
    own, whole = TimeLimit(seconds=2.5), TimeLimit(seconds=1.0, is_last=True)
    own.exceed()
    whole.exceed()

    assert own.exceeded is not None
    assert whole.exceeded is not None
    assert (str(own.exceeded), own.exceeded.code) == ("The attempt took longer than 2.5 s.", "attempt-timed-out")
    assert whole.exceeded.code == "run-timed-out"
    assert isinstance(own.exceeded, TimeoutError)


# ── the timekeeper ──────────────────────────────────────────────────────────────────────────────────────────────


class Watched:
    """A timekeeper on a clock moved by hand, and what it said."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time_limits, "SWEEP_SECONDS", 0.0)
        self.clock = HandClock(now=100.0)
        self.said: list[tuple[str, str]] = []
        self.announced: list[float] = []
        self.timekeeper = Timekeeper(
            clock=self.clock,
            grace=5.0,
            time_is_up=lambda work: self._say("up", work),
            time_is_over=lambda work: self._say("over", work),
            announce=self.announced.append,
        )

    def _say(self, what: str, work: Work) -> None:
        named = cast("Any", work)
        named.is_over_time = True
        self.said.append((what, named.name))

    def watch(self, name: str, seconds: float) -> Work:
        work = cast("Work", SomeWork(name, seconds))
        self.timekeeper.watch(work)
        return work

    async def at(self, now: float) -> list[tuple[str, str]]:
        self.clock.now = now
        self.said.clear()
        for _ in range(5):  # each time but the first, it has swept
            await asyncio.sleep(0)
        return list(self.said)


class SomeWork:
    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.limit = TimeLimit(seconds=seconds)
        self.is_over_time = False


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


async def test_a_handler_is_told_once_and_given_up_after_the_grace(watched: Watched) -> None:
    watched.watch("a", 10)

    assert await watched.at(109.9) == []
    assert await watched.at(110) == [("up", "a")]
    assert await watched.at(114.9) == []
    assert await watched.at(115) == [("over", "a")]
    assert await watched.at(200) == []


async def test_one_who_is_told_late_has_the_whole_grace_all_the_same(watched: Watched) -> None:
    """The loop was blocked, by someone else perhaps."""
    watched.watch("a", 10)

    assert await watched.at(130) == [("up", "a")]
    assert watched.announced[-1] == 135.0
    assert await watched.at(134.9) == []
    assert await watched.at(135) == [("over", "a")]


async def test_what_ended_is_forgotten_and_the_sweeps_end_with_the_last(watched: Watched) -> None:
    work = watched.watch("a", 10)
    watched.timekeeper.forget(work)

    assert await watched.at(200) == []
    assert watched.timekeeper._sweeping is None
    watched.watch("b", 10)
    assert await watched.at(210) == [("up", "b")]


async def test_the_next_hard_limit_is_announced_before_the_handler_begins(watched: Watched) -> None:
    watched.watch("a", 10)
    assert watched.announced == [115.0]

    first = watched.watch("b", 2)
    watched.watch("c", 20)  # later than what was said: no need to say more
    assert watched.announced == [115.0, 107.0]

    watched.timekeeper.forget(first)
    await watched.at(101)
    assert watched.announced == [115.0, 107.0, 115.0]


async def test_when_nothing_is_limited_any_more_that_is_said_too(watched: Watched) -> None:
    watched.timekeeper.forget(watched.watch("a", 10))
    await watched.at(101)

    assert watched.announced == [115.0, NEVER]
