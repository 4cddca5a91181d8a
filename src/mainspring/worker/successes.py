"""Runs that succeeded and are not settled yet, by lease.

A lease all of whose runs succeeded is completed as a whole, which is much cheaper than settling its runs one by one. So
while whole leases leave, those whose runs are still executed wait for the rest of theirs; but only once, and not if
there is nothing else to send: somebody may wait for these results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.store.columns import ID, JOB, SPECIAL
from mainspring.store.completions import Completion

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from uuid import UUID

    from mainspring.store.instants import Micros
    from mainspring.store.leases import Lease, Settled
    from mainspring.worker.work import Work


class Success(NamedTuple):
    """A run has succeeded. The server makes its row of history if all of its lease do; else the worker does."""

    work: Work
    finished_at: Micros
    result: bytes | None

    def settled(self) -> Settled:
        return self.work.succeeded(self.result, self.finished_at)


class WholeLease(NamedTuple):
    """The successes of all runs of a lease."""

    successes: list[Success]

    @property
    def lease_id(self) -> UUID:
        return self.successes[0].work.lease.id

    def busy_micros(self) -> int:
        """How long its handlers took, added up: of a call that several runs shared, each took its share."""
        return sum(
            (finished_at[0] - work.started_at[0]) // work.shared_by
            for work, finished_at, _ in self.successes
            if work.started_at is not None
        )

    def completion(self, followed_jobs: Collection[int] = ()) -> Completion:
        lease = self.successes[0].work.lease
        starts, ends = [0] * lease.size, [0] * lease.size
        results: list[bytes | None] = [None] * lease.size
        for work, finished_at, result in self.successes:
            position = work.position
            assert work.started_at is not None
            starts[position], ends[position], results[position] = work.started_at[0], finished_at[0], result
        reports = [(work.row[ID], work.report.conclude()) for work, _, _ in self.successes if work.report is not None]
        special = [work.row[ID] for work, _, _ in self.successes if work.row[SPECIAL] is not None and work.is_special]
        followed = (
            [work.row[ID] for work, _, _ in self.successes if work.row[JOB] in followed_jobs] if followed_jobs else ()
        )
        return Completion(lease, starts, ends, results, reports, special, followed)


def in_batches(whole: Iterable[WholeLease], most: int) -> Iterator[list[WholeLease]]:
    """As they are, with at most so many runs in each batch, unless a single lease has more."""
    batch: list[WholeLease] = []
    count = 0
    for lease in whole:
        if batch and count + len(lease.successes) > most:
            yield batch
            batch, count = [], 0
        batch.append(lease)
        count += len(lease.successes)
    if batch:
        yield batch


class Successes:
    """Collects them until they leave."""

    def __init__(self) -> None:
        self._of_lease: dict[UUID, list[Success]] = {}
        self._latest: tuple[Lease | None, list[Success]] = (None, [])  # most follow one of the same lease
        self._kept: set[UUID] = set()  # leases that have waited for the rest of their runs
        self.count = 0

    def add(self, success: Success) -> None:
        lease, successes = self._latest
        if success.work.lease is not lease:
            lease = success.work.lease
            successes = self._of_lease.setdefault(lease.id, [])
            self._latest = (lease, successes)
        successes.append(success)
        self.count += 1

    def take_whole(self) -> list[WholeLease]:
        whole = [
            lease_id for lease_id, successes in self._of_lease.items() if len(successes) == successes[0].work.lease.size
        ]
        return [WholeLease(self._take(lease_id)) for lease_id in whole]

    def take_rest(self, *, may_wait: bool) -> list[Success]:
        """What is left. If it may wait, then only what has waited before."""
        leaving = [lease_id for lease_id in self._of_lease if not may_wait or lease_id in self._kept]
        taken = [success for lease_id in leaving for success in self._take(lease_id)]
        self._kept = set(self._of_lease)
        return taken

    def _take(self, lease_id: UUID) -> list[Success]:
        self._latest = (None, [])
        successes = self._of_lease.pop(lease_id)
        self.count -= len(successes)
        return successes
