"""What the worker's log says about attempts, and how much of it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
import structlog
from structlog.testing import capture_logs

from mainspring.errors import AttemptTimedOut, ProcessCrashed
from mainspring.model.job import JobDefinition
from mainspring.model.line import Delivery
from mainspring.model.policy import RetryPolicy
from mainspring.model.steering import Retry, Snooze
from mainspring.store.leases import Lease, Settlement
from mainspring.store.run_log import LINES_PER_SPAN, SPAN_SECONDS
from mainspring.worker.active_leases import ActiveLeases
from mainspring.worker.attempt_log import MAX_ERROR_LENGTH, AttemptLog
from mainspring.worker.registry import handler_of
from mainspring.worker.time_limits import TimeLimit
from mainspring.worker.work import Work

from .hands import HandClock, claimed_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from mainspring.store.leases import Settled

    End = Callable[[Work], Settled]

THREE = RetryPolicy(max_attempts=3, first_delay=timedelta(seconds=2))
NOW = (1_000_000,)


@pytest.fixture(autouse=True)
def without_debug() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    yield
    structlog.reset_defaults()


class Bench:
    def __init__(self) -> None:
        self.clock = HandClock()
        self.leases = ActiveLeases()
        self.log = AttemptLog(clock=self.clock, leases=self.leases)

    def note(self, *ends: End, spent: int = 0, settlement: Settlement | None = None, **work: Any) -> list[Any]:
        """What is written when attempts ended like this."""
        lease = Lease(0, uuid4(), len(ends))
        works = [_work(lease, position, spent, **work) for position in range(len(ends))]
        self.leases.add(lease.id, works)
        with capture_logs() as lines:
            self.log.note([end(each) for end, each in zip(ends, works, strict=True)], settlement or Settlement())
        return lines

    def sum_up(self, **how: Any) -> list[MutableMapping[str, Any]]:
        with capture_logs() as lines:
            self.log.lines.sum_up(**how)
        return lines


def _work(
    lease: Lease, position: int, spent: int, *, job: str = "send", run_id: UUID | None = None, **how: Any
) -> Work:
    row: Any = claimed_row(id=run_id or uuid4(), attempt=spent)
    handler = handler_of(JobDefinition(name=job, retry=THREE), lambda: None)
    work = Work(row, lease, position, 1, uuid4(), NOW, handler, **how)
    work.started_at = NOW
    return work


def failed(error: BaseException) -> End:
    return lambda work: work.failed(error, NOW)


def timed_out(work: Work) -> Settled:
    work.limit = TimeLimit(seconds=1.0, exceeded=AttemptTimedOut("The attempt took longer than 1 s."))
    return work.stopped(NOW)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_failed_attempt_says_what_went_wrong_and_what_follows(bench: Bench) -> None:
    run_id = uuid4()

    assert bench.note(failed(ValueError("no such address")), run_id=run_id) == [
        {
            "event": "an attempt failed",
            "log_level": "warning",
            "job": "send",
            "run": str(run_id),
            "attempt": 1,
            "outcome": "failed",
            "error": "ValueError: no such address",
            "attempts_left": 2,
            "next_attempt_in_s": 2.0,
        }
    ]


@pytest.mark.parametrize(
    ("end", "spent", "event", "left"),
    [
        (failed(ValueError()), 2, "a run is dead", 0),
        (timed_out, 0, "an attempt timed out", 2),
        (timed_out, 2, "a run is dead", 0),
        (lambda work: work.crashed(ProcessCrashed("killed by SIGSEGV"), NOW), 1, "an attempt crashed", 1),
        (lambda work: work.steered(Retry(after=7), NOW), 0, "an attempt failed", 2),
    ],
)
def test_each_kind_of_failure_has_its_line(bench: Bench, end: End, spent: int, event: str, left: int) -> None:
    (line,) = bench.note(end, spent=spent)

    assert (line["event"], line["attempts_left"]) == (event, left)
    assert line["log_level"] == ("warning" if left else "error")


def test_an_attempt_that_may_not_be_repeated_is_lost(bench: Bench) -> None:
    (line,) = bench.note(lambda work: work.interrupted(NOW), delivery=Delivery.AT_MOST_ONCE)

    assert (line["event"], line["log_level"], line["attempts_left"]) == ("a run is lost", "error", 0)


@pytest.mark.parametrize(
    "end",
    [
        lambda work: work.succeeded(None, NOW),
        lambda work: work.cancelled(NOW),
        lambda work: work.interrupted(NOW),
        lambda work: work.given_back(NOW),
        lambda work: work.steered(Snooze(for_=7), NOW),
    ],
)
def test_what_is_no_failure_is_written_at_level_debug_only(bench: Bench, end: End) -> None:
    assert bench.note(end) == []

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG))
    (line,) = bench.note(end)
    assert (line["event"], line["log_level"], line["job"]) == ("an attempt ended", "debug", "send")


def test_nothing_is_said_of_attempts_of_which_history_says_something_else(bench: Bench) -> None:
    run_id = uuid4()

    assert bench.note(failed(ValueError()), run_id=run_id, settlement=Settlement(overruled={run_id})) == []


def test_the_text_of_an_error_is_one_short_line_that_steers_no_terminal(bench: Bench) -> None:
    (line,) = bench.note(failed(ValueError("\x1b[2Jgone\nerror: all is well\u202e" + "x" * 10_000)))

    assert line["error"].startswith("ValueError: \\x1b[2Jgone error: all is well\\u202exxx")
    assert len(line["error"]) < MAX_ERROR_LENGTH + 20
    assert line["error"].isprintable()


# ── floods ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_a_flood_some_lines_are_written_and_the_others_counted(bench: Bench) -> None:
    lines = bench.note(*[failed(ValueError())] * 5_000)

    assert len(lines) == LINES_PER_SPAN
    bench.clock.now += SPAN_SECONDS
    assert bench.sum_up() == [
        {
            "event": "an attempt failed, and more like it",
            "log_level": "warning",
            "job": "send",
            "more": 5_000 - LINES_PER_SPAN,
            "seconds": SPAN_SECONDS,
        }
    ]
    assert bench.sum_up() == [], "each is counted once"
    assert len(bench.note(failed(ValueError()))) == 1, "a new span has lines of its own"


def test_a_count_has_the_level_of_what_it_counts(bench: Bench) -> None:
    bench.note(*[failed(ValueError())] * 5_000, spent=2)

    assert [(line["event"], line["log_level"]) for line in bench.sum_up(at_once=True)] == [
        ("a run is dead, and more like it", "error")
    ]


def test_a_flood_of_one_job_hides_neither_another_job_nor_dead_runs(bench: Bench) -> None:
    bench.note(*[failed(ValueError())] * 5_000)

    assert [line["job"] for line in bench.note(failed(ValueError()), job="bill")] == ["bill"]
    assert [line["event"] for line in bench.note(failed(ValueError()), spent=2)] == ["a run is dead"]


def test_nothing_is_summed_up_before_its_time_unless_the_worker_ends(bench: Bench) -> None:
    bench.note(*[failed(ValueError())] * (LINES_PER_SPAN + 1))
    bench.clock.now += SPAN_SECONDS - 1

    assert bench.sum_up() == []
    assert [line["more"] for line in bench.sum_up(at_once=True)] == [1]


def test_where_all_lines_were_written_there_is_nothing_to_sum_up(bench: Bench) -> None:
    bench.note(*[failed(ValueError())] * LINES_PER_SPAN)

    assert bench.sum_up(at_once=True) == []
