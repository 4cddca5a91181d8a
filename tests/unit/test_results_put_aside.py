"""Results of lanes on a node that is down are put aside: the others go on, and nothing is forgotten or sent twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from mainspring.clock import SystemClock
from mainspring.model.job import JobDefinition
from mainspring.store import completions, leases
from mainspring.store.completions import Completed
from mainspring.store.failures import node_unreachable
from mainspring.store.leases import Lease, Settled, Settlement
from mainspring.worker import flusher as module
from mainspring.worker.flusher import Flusher
from mainspring.worker.registration import WorkerIdentity
from mainspring.worker.registry import handler_of
from mainspring.worker.work import Work

from .hands import claimed_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.errors import NodeUnreachable
    from mainspring.store.completions import Completion
    from mainspring.worker.successes import Success, WholeLease

HERE, THERE = 0, 1  # lanes of a node that answers, and of one that is down at first
WORKER = UUID(int=1)


class Cluster:
    """A link to a database of two nodes, and its reach. What is sent to a lane that is down fails as a whole."""

    def __init__(self) -> None:
        self.down: set[int] = {THERE}
        self.left_out: set[int] = set()
        self.completed: list[int] = []  # the lanes of leases, in order
        self.settled: list[int] = []
        self.reach = self

    @property
    def has_all(self) -> bool:
        return not self.left_out

    def has(self, lane: int) -> bool:
        return lane not in self.left_out

    async def get(self) -> Cluster:
        return self

    async def mend(self, error: NodeUnreachable) -> None:
        self.left_out = set(self.down)

    def start_node(self) -> None:
        self.down, self.left_out = set(), set()

    async def complete(self, _: object, worker_id: UUID, whole: Sequence[Completion]) -> Completed:
        self._refuse({each.lease.lane for each in whole})
        self.completed += [each.lease.lane for each in whole]
        return Completed({each.lease.id for each in whole}, set(), set())

    async def settle(self, _: object, worker_id: UUID, batch: Sequence[Settled], followed: object) -> Settlement:
        self._refuse({each.lease.lane for each in batch})
        self.settled += [each.lease.lane for each in batch]
        return Settlement(accepted=len(batch))

    def _refuse(self, lanes: set[int]) -> None:
        if lanes & self.down:
            raise node_unreachable("node-2:5432", "08006", "connection refused")


class Bench:
    """A flusher that runs, and what it said about its results."""

    def __init__(self, cluster: Cluster) -> None:
        self.told = 0
        self.news = asyncio.Event()
        link: Any = cluster
        identity = WorkerIdentity(id=WORKER, lanes=2, clock=SystemClock())
        self.flusher = Flusher(worker=identity, link=link, settled=self._settled, completed=self._completed)

    def _settled(self, batch: list[Settled], settlement: Settlement) -> None:
        self._tell(len(batch))

    def _completed(self, whole: list[WholeLease], found: Completed) -> None:
        self._tell(sum(len(each.successes) for each in whole))

    def _tell(self, count: int) -> None:
        self.told += count
        self.news.set()

    async def until_told(self, count: int) -> None:
        while self.told < count:
            self.news.clear()
            await self.news.wait()


def successes(lane: int, size: int) -> list[Success]:
    lease, handler = Lease(lane, uuid4(), size), handler_of(JobDefinition(name="job"), lambda: None)
    works = [Work(claimed_row(), lease, position, 7, WORKER, (0,), handler) for position in range(size)]
    for work in works:
        work.started_at = (0,)
    return [work.success(None, (1,)) for work in works]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(completions, "complete", cluster.complete)
    monkeypatch.setattr(leases, "settle", cluster.settle)
    monkeypatch.setattr(module, "ASIDE_SECONDS", 0.0)
    return cluster


@pytest.mark.parametrize("is_whole", [True, False], ids=["whole leases", "single runs"])
async def test_results_of_a_node_that_is_down_wait_and_those_of_others_do_not(cluster: Cluster, is_whole: bool) -> None:
    bench = Bench(cluster)
    running = asyncio.create_task(bench.flusher.run())
    try:
        for lane in (HERE, THERE):
            for success in successes(lane, 3):
                bench.flusher.add(success if is_whole else success.settled())
        await bench.until_told(3)
        assert bench.flusher.unsettled == 3, "what is put aside counts: a crash would repeat it"
        assert not bench.flusher._is_idle.is_set(), "a worker that drains waits for it"

        cluster.start_node()
        await bench.flusher.drained()
    finally:
        running.cancel()

    assert (bench.told, bench.flusher.unsettled) == (6, 0)
    sent = cluster.completed if is_whole else cluster.settled
    assert sorted(sent) == ([HERE, THERE] if is_whole else [HERE] * 3 + [THERE] * 3), "each once"
