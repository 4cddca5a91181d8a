"""How many slots a queue wants, and how many processes a supervisor has for them."""

from __future__ import annotations

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.capacity import (
    LineLoad,
    Room,
    Sample,
    lacking_slots,
    measured,
    starts_per_second,
    wanted_slots,
)
from mainspring.worker.settings import WorkerSettings
from mainspring.worker.supervisor import DOWN_AFTER_SECONDS, Autoscaler


def line(now: Sample, then: Sample | None = None, *, number: int = 1, oldest: float | None = None) -> LineLoad:
    return LineLoad(id=number, queue="mail", now=now, then=then, oldest_seconds=oldest)


def sample(depth: int = 0, holding: int = 0, finished: int = 0, busy: float = 0.0, age: float = 0.0) -> Sample:
    return Sample(depth=depth, holding=holding, finished=finished, busy_seconds=busy, age=age)


@pytest.mark.parametrize(
    ("depth", "holding", "arrivals", "mean", "wanted"),
    [
        (0, 0, 0.0, None, 0),  # nothing to do, nothing wanted
        (0, 0, 10.0, 0.4, 5),  # 10/s × 0.4 s = 4 busy slots, at 80 %
        (3, 0, 0.0, 600.0, 3),  # never more slots than runs that wait
        (300, 0, 0.0, 1.0, 10),  # a backlog of 300 s of work, in half a minute
        (1, 0, 0.0, 0.001, 1),  # a single run wants a slot
        (5, 0, 0.0, None, 1),  # nothing known yet: a second each
        (1_000_000, 200, 10_000.0, 0.001, 46),
    ],
)
def test_slots_keep_up_with_what_arrives_and_work_the_backlog_off(
    depth: int, holding: int, arrivals: float, mean: float | None, wanted: int
) -> None:
    assert wanted_slots(depth, holding, arrivals, mean) == wanted


def test_rates_are_differences_between_two_looks() -> None:
    queue = measured(
        [line(sample(depth=50, finished=300, busy=90.0), sample(depth=20, finished=100, busy=50.0, age=10))], slots=4
    )

    assert (queue.finished_per_s, queue.arrivals_per_s, queue.mean_seconds) == (20.0, 23.0, 0.2)


@pytest.mark.parametrize(
    ("now", "then", "occupied", "per_second"),
    [
        (sample(finished=300), sample(depth=20, finished=100, age=10), 8, 20.0),  # as fast as runs have ended
        (sample(finished=8, busy=40.0), sample(depth=22, age=9.9), 8, 1.6),  # eight are under way: 8 slots / 5 s
        (sample(finished=40, busy=40.0), sample(depth=0, age=50), 8, 8.0),  # idle at first: 8 slots / 1 s
        (sample(finished=40, busy=40.0), sample(depth=0, age=50), 0, 0.8),  # nobody is at it now
        (sample(finished=7), sample(depth=9, finished=7, age=10), 8, 0.0),  # nothing has ended
        (sample(finished=0), sample(depth=9, finished=7, age=10), 8, 0.0),  # tallies were forgotten
        (sample(finished=7), None, 8, None),
        (sample(finished=7), sample(), 8, None),
    ],
)
def test_a_line_moves_as_fast_as_runs_end_or_as_its_slots_allow(
    now: Sample, then: Sample | None, occupied: int, per_second: float | None
) -> None:
    assert starts_per_second(now, then, occupied) == per_second


def test_there_are_no_rates_without_an_earlier_look() -> None:
    queue = measured([line(sample(depth=5, finished=10, busy=2.0))], slots=1)

    assert (queue.finished_per_s, queue.arrivals_per_s, queue.mean_seconds) == (None, None, 0.2)


def test_the_lines_of_a_queue_count_together() -> None:
    queue = measured(
        [
            line(sample(depth=5, holding=1), oldest=3.0),
            line(sample(depth=7, finished=4), sample(age=2.0), number=2, oldest=9.0),
        ],
        slots=1,
    )

    assert (queue.depth, queue.holding, queue.oldest_seconds, queue.finished_per_s) == (12, 1, 9.0, 2.0)


def test_runs_that_were_cancelled_do_not_make_arrivals_negative() -> None:
    queue = measured([line(sample(depth=0), sample(depth=500, age=10.0))], slots=1)

    assert queue.arrivals_per_s == 0.0


GPU, EU = frozenset({"gpu"}), frozenset({"gpu", "eu"})


def room(slots: int, labels: frozenset[str] = frozenset(), queue: str = "mail") -> Room:
    return Room(queues=frozenset({queue}), labels=labels, slots=slots)


@pytest.mark.parametrize(
    ("others", "lacking"),
    [
        ([], 14),
        ([room(100)], 4),  # without the label, they help with what asks for none
        ([room(100, GPU)], 0),
        ([room(100, queue="reports")], 14),
        ([room(3), room(3), room(3, EU)], 5),  # each counts, even beside an equal
        ([room(5, EU), room(8)], 1),  # whoever has a label serves what asks for it first
    ],
)
def test_slots_of_others_count_for_what_they_can_serve(others: list[Room], lacking: int) -> None:
    assert lacking_slots({("mail", frozenset()): 10, ("mail", GPU): 4}, others) == lacking


# ── processes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_processes_are_added_at_once_and_never_beyond_the_most() -> None:
    scaler = Autoscaler(least=1, most=8, slots=10)

    assert scaler.target(35, processes=1, now=0.0) == 4
    assert scaler.target(10_000, processes=4, now=1.0) == 8


def test_processes_are_taken_away_one_at_a_time_after_a_while() -> None:
    scaler = Autoscaler(least=1, most=8, slots=10)

    assert scaler.target(0, processes=4, now=0.0) == 4
    assert scaler.target(0, processes=4, now=DOWN_AFTER_SECONDS - 1) == 4
    assert scaler.target(0, processes=4, now=DOWN_AFTER_SECONDS) == 3
    assert scaler.target(0, processes=3, now=DOWN_AFTER_SECONDS + 1) == 3
    assert scaler.target(0, processes=3, now=2 * DOWN_AFTER_SECONDS) == 2
    assert scaler.target(0, processes=1, now=9 * DOWN_AFTER_SECONDS) == 1


def test_work_that_comes_and_goes_does_not_make_processes_come_and_go() -> None:
    scaler = Autoscaler(least=1, most=8, slots=10)
    processes, changes = 1, 0
    for second in range(0, 600, 5):
        target = scaler.target(40 if second % 40 < 20 else 5, processes, float(second))
        changes += target != processes
        processes = target

    assert (processes, changes) == (4, 1)


def test_what_fits_only_just_is_not_taken_away() -> None:
    scaler = Autoscaler(least=1, most=8, slots=10)

    assert {scaler.target(18, processes=3, now=float(now)) for now in range(0, 300, 5)} == {3}


@pytest.mark.parametrize("bounds", [(0, 3), (4, 3), (1, 1000)])
def test_bounds_that_make_no_sense_are_refused(bounds: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match=r"autoscale is \d+:\d+; it must be FEWEST:MOST") as caught:
        WorkerSettings(autoscale=bounds)

    assert caught.value.code == "invalid-autoscale"
