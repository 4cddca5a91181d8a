"""How many runs of a claim may need a thread, and when a line is asked again in which some were left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from mainspring.model.job import JobDefinition
from mainspring.model.line import Delivery, Line
from mainspring.store.columns import JOB
from mainspring.worker.claim_front import LOOK_AT_MOST_EVERY, LOOK_SHARE, pause_after
from mainspring.worker.lines import Lines
from mainspring.worker.registry import handler_of
from mainspring.worker.thread_quota import NEVER, ThreadQuota

from .hands import HandClock, served_jobs, tenant_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

IN_THREAD, ASYNC = {JOB: 7}, {JOB: 8}
PLAIN, ONCE = (0, 1), (0, 2)


class Capacity:
    """As much of one as matters here."""

    room = free = kept = 0

    def thread_room(self) -> int:
        return self.room

    def free_threads(self) -> int:
        return self.free

    @property
    def has_spare_thread(self) -> bool:
        return self.free > self.kept

    def keep_a_thread(self) -> None:
        self.kept = 1

    def release_thread(self) -> None:
        self.kept = 0


def _blocks() -> None: ...


@dataclass
class Item:
    number: int


def _blocks_for_many(items: list[Item]) -> None: ...


class Bench:
    def __init__(self, jobs: Sequence[int] = (7,), chunk_jobs: Sequence[int] = ()) -> None:
        self.capacity = Capacity()
        self.clock = HandClock()
        lines = Lines(queues=["default"], labels=[])
        lines.learn(tenant_lines({Line("default"): PLAIN[1], Line("default", (), Delivery.AT_MOST_ONCE): ONCE[1]}))
        handlers = {number: handler_of(JobDefinition(name=f"job-{number}"), _blocks) for number in jobs}
        handlers |= {
            number: handler_of(JobDefinition(name=f"job-{number}", chunk=10), _blocks_for_many) for number in chunk_jobs
        }
        self.quota = ThreadQuota(
            jobs=served_jobs(handlers),
            capacity=cast("Any", self.capacity),
            lines=lines,
            clock=self.clock,
        )

    def learn(self, pair: tuple[int, int], quota: int | None, *rows: Any) -> list[Any]:
        return list(self.quota.learn(pair, quota, rows, began=self.clock.now))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(("room", "count", "quota"), [(8, 8, None), (8, 9, 8), (0, 1, 0), (-3, 1, 0)])
def test_as_many_as_there_is_room_for(bench: Bench, room: int, count: int, quota: int | None) -> None:
    bench.capacity.room = room

    assert bench.quota.of(PLAIN, count) == quota


def test_where_no_handler_needs_a_thread_nothing_is_counted() -> None:
    assert Bench(jobs=[]).quota.of(PLAIN, 500) is None


def test_runs_that_share_a_thread_are_left_in_line_only_where_none_is_free() -> None:
    bench = Bench(chunk_jobs=[9])

    assert [bench.quota.jobs(PLAIN, quota) for quota in (None, 3, 0)] == [(), [7], [7, 9]]
    bench.learn(PLAIN, 3, *[{JOB: 9}] * 500)
    assert not bench.quota.has_left(PLAIN)
    bench.learn(PLAIN, 0)
    assert bench.quota.has_left(PLAIN)


@pytest.mark.parametrize(
    ("quota", "rows", "has_left"),
    [
        (None, [IN_THREAD] * 3, False),
        (2, [IN_THREAD, ASYNC], False),  # there was room for one more: there is none
        (2, [IN_THREAD, ASYNC, IN_THREAD], True),
        (0, [ASYNC], True),
        (0, [], True),
    ],
)
def test_some_may_have_been_left_where_the_quota_was_used_up(
    bench: Bench, quota: int | None, rows: list[Any], has_left: bool
) -> None:
    passed = bench.learn(PLAIN, quota, *rows)

    assert bench.quota.has_left(PLAIN) == has_left
    assert passed == ([row for row in rows if row is IN_THREAD] if has_left else rows), "the line begins before these"


def test_a_line_with_nothing_else_is_not_asked_all_the_time(bench: Bench) -> None:
    bench.learn(PLAIN, 0)
    assert not bench.quota.may_ask(PLAIN)
    assert bench.quota.next_at == bench.clock.now + LOOK_AT_MOST_EVERY

    bench.clock.now += LOOK_AT_MOST_EVERY
    assert bench.quota.may_ask(PLAIN)
    assert bench.quota.next_at == NEVER, "nobody has to be woken for it twice"


def test_many_lines_with_nothing_else_take_a_small_share_of_the_time_together(bench: Bench) -> None:
    cost, pairs = 0.01, [(lane, PLAIN[1]) for lane in range(40)]
    for pair in pairs:
        bench.quota.learn(pair, 0, (), began=bench.clock.now - cost)

    bench.clock.now += pause_after(cost)
    assert not bench.quota.may_ask(pairs[-1])
    bench.clock.now += len(pairs) * cost / LOOK_SHARE
    assert bench.quota.may_ask(pairs[-1])


def test_a_line_that_gave_something_else_may_be_asked_at_once(bench: Bench) -> None:
    bench.learn(PLAIN, 0, ASYNC)

    assert bench.quota.may_ask(PLAIN)


def test_a_line_is_worth_asking_again_once_there_is_room(bench: Bench) -> None:
    bench.learn(PLAIN, 0)
    assert bench.quota.worth_asking() == []

    bench.capacity.room = 1
    assert bench.quota.worth_asking() == [PLAIN]
    assert bench.quota.may_ask(PLAIN)
    assert bench.quota.worth_asking() == [], "once"


def test_one_free_thread_does_not_make_every_line_worth_asking(bench: Bench) -> None:
    other = (1, PLAIN[1])
    bench.learn(PLAIN, 0)
    bench.learn(other, 0)
    bench.capacity.room = 1

    assert bench.quota.worth_asking() == [PLAIN], "who waits longest"
    assert bench.quota.worth_asking() == []
    bench.learn(PLAIN, 1)
    assert bench.quota.worth_asking() == [other], "the first had nothing"


def test_a_free_thread_is_for_the_urgent_before_it_is_for_who_waits_longest(bench: Bench) -> None:
    other = (1, PLAIN[1])
    bench.learn(PLAIN, 0)
    bench.learn(other, 0)
    bench.capacity.room = 1

    assert bench.quota.worth_asking({other}) == [other]


def test_a_thread_is_kept_for_runs_that_may_not_wait(bench: Bench) -> None:
    bench.capacity.room = 3  # some may wait here, yet no thread is free
    assert bench.quota.of(ONCE, 1) == 0
    bench.learn(ONCE, 0)
    assert bench.capacity.kept == 1
    assert bench.quota.worth_asking() == []

    bench.capacity.free = 1
    assert bench.quota.worth_asking() == [ONCE]
    assert bench.quota.of(ONCE, 1) is None
    bench.learn(ONCE, None, IN_THREAD)
    assert bench.capacity.kept == 0


def test_a_claim_that_failed_keeps_no_thread_and_its_line_is_asked_again(bench: Bench) -> None:
    bench.learn(ONCE, 0)
    bench.capacity.free = 1
    assert bench.quota.worth_asking() == [ONCE]

    bench.quota.failed(ONCE)
    assert bench.capacity.kept == 0
    assert bench.quota.worth_asking() == [ONCE], "again"


def test_a_claim_that_failed_takes_no_thread_from_those_who_wait_for_one(bench: Bench) -> None:
    bench.learn(ONCE, 0)
    bench.quota.failed(PLAIN)

    assert bench.capacity.kept == 1
    assert not bench.quota.has_left(PLAIN)


def test_a_thread_that_is_spare_needs_not_be_kept(bench: Bench) -> None:
    bench.capacity.free = 1

    assert bench.quota.of(ONCE, 1) is None
    bench.learn(ONCE, None, IN_THREAD)
    assert bench.capacity.kept == 0
