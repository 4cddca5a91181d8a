"""Whole leases: when all runs of one succeeded, it is removed and turned into history by one function on the server.

What its runs brought along (payloads, headers, tags) does not travel back, and nothing is made of them in Python.
"""

from __future__ import annotations

from contextlib import nullcontext
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from mainspring.store.connection import transaction
from mainspring.store.leases import END_RUNS, TELL_CHAINS, in_order_of_lanes
from mainspring.store.reports import conclude
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import AbstractAsyncContextManager
    from uuid import UUID

    from mainspring.store.connection import Connection
    from mainspring.store.leases import Lease
    from mainspring.store.reports import FinalReport

COMPLETE = load("leases/complete")


class Completion(NamedTuple):
    """A lease all of whose runs succeeded: when each started and finished and what it returned, by position."""

    lease: Lease
    starts: list[int]  # in microseconds since PostgreSQL's epoch
    ends: list[int]
    results: list[bytes | None]
    reports: list[tuple[UUID, FinalReport]]  # of those runs that said something
    special: Sequence[UUID] = ()  # those of whose end more has to happen than a row of history
    followed: Sequence[UUID] = ()  # those after which others are to be submitted


class Completed(NamedTuple):
    """Which leases were completed, and in which lanes others wait for some of their runs, or follow them."""

    leases: set[UUID]
    told: set[int]
    followed: set[int]


async def complete(connection: Connection, worker_id: UUID, completions: Sequence[Completion]) -> Completed:
    """Turn whole leases into history, those that are there, this worker's, and untouched.

    The runs of the others have to be settled one by one. So has a lease that is sent again because its COMMIT went
    unanswered: whether it was recorded before is then looked up.
    """
    completed = Completed(set(), set(), set())
    async with _transaction_unless(connection.is_distributed, connection):
        for lane, of_lane in in_order_of_lanes(completions):
            answer = await _complete_lane(connection, worker_id, lane, of_lane)
            leases = answer & {each.lease.id for each in of_lane}
            completed.leases.update(leases)
            if len(answer) > len(leases):
                completed.told.add(lane)
            if any(each.followed for each in of_lane if each.lease.id in leases):
                completed.followed.add(lane)
    return completed


def _transaction_unless(is_left_out: bool, connection: Connection) -> AbstractAsyncContextManager[object]:
    """Lanes of several nodes in one transaction are a two-phase commit on all of them; each by itself is one command.

    If a later one fails, the first are completed all the same. Sent again, they are found as recorded before.
    """
    return nullcontext() if is_left_out else transaction(connection)


async def _complete_lane(
    connection: Connection, worker_id: UUID, lane: int, completions: list[Completion]
) -> set[UUID]:
    if connection.is_distributed and any(each.reports or each.special or each.followed for each in completions):
        async with transaction(connection):
            return await _complete_and_conclude(connection, worker_id, lane, completions)
    return await _complete_and_conclude(connection, worker_id, lane, completions)


async def _complete_and_conclude(
    connection: Connection, worker_id: UUID, lane: int, completions: list[Completion]
) -> set[UUID]:
    completions.sort()  # the order in which everybody locks leases: no waiting in a circle
    completed = await COMPLETE.fetchval(
        connection,
        lane=lane,
        worker=worker_id,
        leases=[each.lease.id for each in completions],
        sizes=[each.lease.size for each in completions],
        starts=_numbers(each.starts for each in completions),
        ends=_numbers(each.ends for each in completions),
        results=_results(completions),
    )
    special = [run_id for each in completions if each.lease.id in completed for run_id in each.special]
    if special:
        await END_RUNS.execute(connection, lane=lane, runs=special)
    followed = [run_id for each in completions if each.lease.id in completed for run_id in each.followed]
    if followed:
        await TELL_CHAINS.execute(connection, lane=lane, runs=followed)
    reports = [report for each in completions if each.lease.id in completed for report in each.reports]
    if reports:
        ended = [run_id for run_id, report in reports if report.has_rows]
        await conclude(connection, lane, [report for _, report in reports], ended)
    return set(completed)


def _numbers(lists: Iterable[list[int]]) -> str:
    """An array as PostgreSQL writes it."""
    return f"{{{','.join(map(str, chain.from_iterable(lists)))}}}"


def _results(completions: Sequence[Completion]) -> list[bytes | None] | None:
    """None where nobody returned anything: an array takes the driver long, and most handlers return nothing."""
    results = list(chain.from_iterable(each.results for each in completions))
    return results if any(result is not None for result in results) else None
