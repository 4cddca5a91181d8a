"""Whole leases: when all runs of one succeeded, it is removed and turned into history by one function on the server.

What its runs brought along (payloads, headers, tags) does not travel back, and nothing is made of them in Python.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mainspring.store.connection import transaction
from mainspring.store.leases import in_order_of_lanes
from mainspring.store.reports import conclude
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection
    from mainspring.store.instants import Micros
    from mainspring.store.leases import Lease
    from mainspring.store.reports import FinalReport

COMPLETE = load("leases/complete")
T = TypeVar("T")


class Completion(NamedTuple):
    """A lease all of whose runs succeeded: when each started and finished and what it returned, by position."""

    lease: Lease
    starts: list[Micros]
    ends: list[Micros]
    results: list[bytes | None]
    reports: list[tuple[UUID, FinalReport]]  # of those runs that said something


async def complete(connection: Connection, worker_id: UUID, completions: Sequence[Completion]) -> set[UUID]:
    """Turn whole leases into history; answers with the ids of those that were there, this worker's, and untouched.

    The runs of the others have to be settled one by one. So has a lease that is sent again because its COMMIT went
    unanswered: whether it was recorded before is then looked up.
    """
    completed: set[UUID] = set()
    async with transaction(connection):
        for lane, of_lane in in_order_of_lanes(completions):
            completed |= await _complete_lane(connection, worker_id, lane, of_lane)
    return completed


async def _complete_lane(
    connection: Connection, worker_id: UUID, lane: int, completions: list[Completion]
) -> set[UUID]:
    completions.sort()  # the order in which everybody locks leases: no waiting in a circle
    completed = await COMPLETE.fetchval(
        connection,
        lane=lane,
        worker=worker_id,
        leases=[each.lease.id for each in completions],
        sizes=[each.lease.size for each in completions],
        starts=_joined(each.starts for each in completions),
        ends=_joined(each.ends for each in completions),
        results=_joined(each.results for each in completions),
    )
    reports = [report for each in completions if each.lease.id in completed for report in each.reports]
    if reports:
        ended = [run_id for run_id, report in reports if report.has_rows]
        await conclude(connection, lane, [report for _, report in reports], ended)
    return set(completed)


def _joined(lists: Iterable[list[T]]) -> list[T]:
    return list(chain.from_iterable(lists))
