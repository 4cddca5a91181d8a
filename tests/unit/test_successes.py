"""Which successes leave as whole leases, which one by one, and which wait for the rest of their lease."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from mainspring.model.job import JobDefinition
from mainspring.store.columns import ID
from mainspring.store.leases import Fate, Lease
from mainspring.worker.registry import handler_of
from mainspring.worker.settlements import LineStatistics
from mainspring.worker.successes import Success, Successes, WholeLease, in_batches
from mainspring.worker.work import Work

from .hands import claimed_row

WORKER = UUID(int=1)


def lease_of(size: int) -> list[Success]:
    """The successes of all runs of one lease, the last one first."""
    lease, handler = Lease(0, uuid4(), size), handler_of(JobDefinition(name="job"), lambda: None)
    works = [Work(claimed_row(), lease, position, 7, WORKER, (0,), handler) for position in range(size)]
    for work in works:
        work.started_at = (100 + work.position,)
    return [work.success(b"%d" % work.position, (200 + 2 * work.position,)) for work in reversed(works)]


@pytest.fixture
def successes() -> Successes:
    return Successes()


def add(successes: Successes, some: list[Success]) -> None:
    for each in some:
        successes.add(each)


def test_a_lease_is_whole_when_all_its_runs_have_succeeded(successes: Successes) -> None:
    *most, last = whole = lease_of(3)
    add(successes, most)
    assert successes.take_whole() == []
    successes.add(last)
    (taken,) = successes.take_whole()

    assert taken.successes == whole
    assert successes.count == 0


def test_a_whole_lease_knows_its_runs_by_position(successes: Successes) -> None:
    add(successes, lease_of(3))
    (taken,) = successes.take_whole()
    completion = taken.completion()

    assert completion.starts == [100, 101, 102]
    assert completion.ends == [200, 202, 204]
    assert completion.results == [b"0", b"1", b"2"]
    assert completion.reports == []
    assert taken.busy_micros() == 100 + 101 + 102


def test_the_rest_leaves_at_once_if_nothing_else_does(successes: Successes) -> None:
    *most, _ = lease_of(3)
    add(successes, most)

    assert successes.take_rest(may_wait=False) == most
    assert successes.count == 0


def test_beside_whole_leases_the_rest_waits_once(successes: Successes) -> None:
    *most, _ = lease_of(3)
    add(successes, most)
    assert successes.take_rest(may_wait=True) == []
    *others, _ = lease_of(3)
    add(successes, others)

    assert successes.take_rest(may_wait=True) == most, "it has waited before"
    assert successes.take_rest(may_wait=True) == others
    assert successes.count == 0


def test_what_waited_may_have_become_whole(successes: Successes) -> None:
    *most, last = lease_of(3)
    add(successes, most)
    successes.take_rest(may_wait=True)
    successes.add(last)

    assert len(successes.take_whole()) == 1
    assert successes.take_rest(may_wait=True) == []


def test_a_success_that_is_settled_by_itself_is_an_end() -> None:
    (success,) = lease_of(1)
    settled = success.settled()

    assert settled.fate is Fate.END
    assert settled.run_id == success.work.row[ID]
    assert success.work.is_settled


def test_runs_that_shared_a_call_took_their_share_of_its_time(successes: Successes) -> None:
    some = lease_of(3)
    for success in some:
        success.work.shared_by = 3
    add(successes, some)
    (taken,) = successes.take_whole()
    statistics = LineStatistics(WORKER)
    statistics.add(each.settled() for each in some)

    assert taken.busy_micros() == 33 + 33 + 34
    assert statistics._busy_micros[7] == 33 + 33 + 34


def test_whole_leases_leave_in_batches_of_so_many_runs() -> None:
    whole = [WholeLease(lease_of(size)) for size in (3, 3, 9, 1, 2)]

    sizes = [[len(lease.successes) for lease in batch] for batch in in_batches(whole, 6)]

    assert sizes == [[3, 3], [9], [1, 2]]
    assert list(in_batches([], 6)) == []
