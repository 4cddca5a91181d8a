"""What attempts report while they go on: progress and checkpoints, which end with their runs, and log lines.

Every word is fenced by the lease: a worker that woke up late changes nothing. The last lines of an attempt are
written in the transaction that settles it, together with those whose writing was not yet confirmed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from mainspring.model.ids import lane_of, made_at
from mainspring.store.history import HOST_CLOCK_SLACK
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

_LINES = ("lane", "run_id", "fence", "attempt", "part", "lines")


class LeasedAttempt(NamedTuple):
    """An attempt: where its run is leased, and which try it is."""

    lane: int
    lease_id: UUID
    position: int
    run_id: UUID
    fence: int
    attempt: int


class Said(Protocol):
    """Something said by an attempt."""

    @property
    def source(self) -> LeasedAttempt: ...


class Word(NamedTuple):
    """How far an attempt is."""

    source: LeasedAttempt
    fraction: float
    message: str


class Part(NamedTuple):
    """Some log lines of an attempt, encoded."""

    source: LeasedAttempt
    number: int
    lines: str


class Checkpoint(NamedTuple):
    source: LeasedAttempt
    value: bytes


class FinalReport(NamedTuple):
    """What an attempt leaves behind when it is settled: its last lines, and whether it may have said more than that."""

    parts: tuple[Part, ...]
    has_rows: bool


S = TypeVar("S", bound=Said)


def _by_lane(said: Iterable[S]) -> list[tuple[int, list[S]]]:
    """Lane by lane, in one order everywhere."""
    lanes: dict[int, list[S]] = defaultdict(list)
    for each in said:
        lanes[each.source.lane].append(each)
    return sorted(lanes.items())


def _sources(said: Sequence[Said]) -> dict[str, list[object]]:
    sources = [each.source for each in said]
    return {
        "leases": [source.lease_id for source in sources],
        "positions": [source.position for source in sources],
        "runs": [source.run_id for source in sources],
        "fences": [source.fence for source in sources],
    }


def _attempts(said: Sequence[Said]) -> list[int]:
    return [each.source.attempt for each in said]


async def note_progress(connection: Connection, worker_id: UUID, words: Iterable[Word]) -> None:
    """At most one word per run."""
    for lane, some in _by_lane(words):
        await load("reports/note_progress").execute(
            connection,
            lane=lane,
            worker=worker_id,
            **_sources(some),
            attempts=_attempts(some),
            fractions=[word.fraction for word in some],
            messages=[word.message for word in some],
        )


async def append_lines(connection: Connection, worker_id: UUID, parts: Iterable[Part]) -> None:
    for lane, some in _by_lane(parts):
        await load("reports/append_lines").execute(
            connection,
            lane=lane,
            worker=worker_id,
            **_sources(some),
            attempts=_attempts(some),
            parts=[part.number for part in some],
            texts=[part.lines for part in some],
        )


async def store_checkpoints(
    connection: Connection, worker_id: UUID, checkpoints: Iterable[Checkpoint]
) -> set[tuple[UUID, int]]:
    """At most one per run; answers with the (run, fence) of those that were stored."""
    stored: set[tuple[UUID, int]] = set()
    for lane, some in _by_lane(sorted(checkpoints, key=lambda each: each.source.lease_id)):
        rows = await load("reports/store_checkpoints").fetch(
            connection, lane=lane, worker=worker_id, **_sources(some), checkpoints=[each.value for each in some]
        )
        stored |= {(row["run_id"], row["fence"]) for row in rows}
    return stored


async def conclude(connection: Connection, lane: int, reports: Sequence[FinalReport], ended: Sequence[UUID]) -> None:
    """Inside the transaction that settles these attempts of one lane; `ended` are the runs that go on no more."""
    records = [
        (lane, part.source.run_id, part.source.fence, part.source.attempt, part.number, part.lines)
        for each in reports
        for part in each.parts
    ]
    if records:
        await connection.copy_records_to_table("log", columns=_LINES, records=records)
    if ended:
        await load("reports/forget").execute(connection, lane=lane, runs=ended)


async def checkpoint_of(connection: Connection, run_id: UUID) -> bytes | None:
    value: bytes | None = await load("reports/find_checkpoint").fetchval(connection, lane=lane_of(run_id), run=run_id)
    return value


async def progress_of(connection: Connection, run_id: UUID) -> Record | None:
    return await load("reports/find_progress").fetchrow(connection, lane=lane_of(run_id), run=run_id)


async def lines_of(connection: Connection, run_id: UUID, after: tuple[int, int] = (0, 0)) -> list[Record]:
    """Parts of a run's log after a given (fence, part), in order."""
    fence, part = after
    return await load("reports/lines_of_run").fetch(
        connection,
        lane=lane_of(run_id),
        run=run_id,
        since=made_at(run_id) - HOST_CLOCK_SLACK,
        fence=fence,
        part=part,
    )


async def sweep(connection: Connection, lane: int) -> int:
    """Forget what runs that ended elsewhere left behind."""
    return int(await load("reports/sweep").fetchval(connection, lane=lane))
