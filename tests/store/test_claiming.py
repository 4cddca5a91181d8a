"""One claim beside others: it takes what nobody else has, waits for nobody, and locks no single runs if it is alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring.model.ids import lane_of
from mainspring.model.run import PRIORITIES
from mainspring.store import leases
from mainspring.store.statements import load

from .routines import inside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

RUNS = 20
NOT_DELAYED = 30.0


class Queue:
    """Runs of one lane and line, and two connections beside each other."""

    def __init__(self, app: Mainspring, mine: Connection, other: Connection) -> None:
        @app.job
        async def noop() -> None: ...

        self.noop, self.mine, self.other = noop, mine, other
        self.ids: list[UUID] = []
        self.line = 0

    async def fill(self) -> None:
        handles = await self.noop.submit_many([{}] * RUNS)
        self.ids = [handle.id for handle in handles]
        assert len({lane_of(each) for each in self.ids}) == 1
        self.line = await self.mine.fetchval("select line_id from ready limit 1")

    @property
    def lane(self) -> int:
        return lane_of(self.ids[0])

    async def claim(self, connection: Connection | None = None, count: int = RUNS) -> list[UUID]:
        connection = connection or self.mine
        async with asyncio.timeout(NOT_DELAYED):
            rows = await leases.claim(
                connection,
                lane=self.lane,
                line=self.line,
                priorities=PRIORITIES,
                fronts=[0] * len(PRIORITIES),
                count=count,
                lease_id=uuid4(),
                worker_id=await registered_worker(connection),
            )
        return [row["id"] for row in rows]


@pytest.fixture
async def queue(app: Mainspring, database: Database) -> AsyncIterator[Queue]:
    mine, other = await database.connect(raw_time=True), await database.connect(raw_time=True)
    queue = Queue(app, mine, other)
    await queue.fill()
    yield queue
    await mine.close()
    await other.close()


async def test_two_claims_at_once_take_different_runs_and_neither_waits(queue: Queue) -> None:
    async with queue.other.transaction():
        theirs = await queue.claim(queue.other, count=5)
        ours = await queue.claim()

    assert len(theirs) == 5
    assert sorted([*ours, *theirs]) == sorted(queue.ids)


async def test_a_claim_passes_over_what_somebody_holds(queue: Queue) -> None:
    async with queue.other.transaction():
        held = await queue.other.fetchval(
            "select array_agg(id) from (select id from ready order by rank limit 3 for update) as few"
        )
        ours = await queue.claim()

    assert sorted([*ours, *held]) == sorted(queue.ids)
    assert sorted(await queue.claim()) == sorted(held), "they are free again, although somebody has touched them"


async def test_a_claim_that_is_alone_locks_no_single_runs(queue: Queue) -> None:
    """Each lock would be a record in the write-ahead log. Where a row was locked before, all are."""
    assert await _records_of(queue.mine, queue.claim) & {"LOCK"} == set()


async def test_a_claim_beside_another_locks_its_runs(queue: Queue) -> None:
    """The control of the test above: this is what it would see."""
    async with queue.other.transaction():
        await queue.claim(queue.other, count=5)
        records = await _records_of(queue.mine, queue.claim)

    assert "LOCK" in records


async def test_what_was_changed_since_it_was_found_is_not_taken(queue: Queue) -> None:
    """A claim that is alone takes runs by the statement after the one that found them: one may be elsewhere by then."""
    moved, staged, *others = queue.ids
    await queue.mine.execute("update ready set line_id = line_id + 1 where id = $1", moved)
    await queue.mine.execute("update ready set rank = rank_bound() + 3600000000 where id = $1", staged)
    delete = next(each for each in inside(load("runs/claim")) if "delete from ready" in each.text)

    (taken, ids, _ranks, _gates) = await delete.fetchrow(queue.mine, lane=queue.lane, picked=queue.ids, line=queue.line)  # type: ignore[misc]

    assert sorted(ids) == sorted(others)
    assert len(taken) == len(others)


async def test_a_claim_that_finds_nothing_leaves_no_lease(queue: Queue) -> None:
    await queue.claim()

    assert await queue.claim() == []
    assert await queue.mine.fetchval("select count(*) from lease") == 1


async def _records_of(connection: Connection, act: Callable[[], Any]) -> set[str]:
    """The kinds of records that an act writes ahead of runs in line.

    The log is the whole server's, where other tests write as well: only this table of this database counts.
    """
    await connection.execute("create extension if not exists pg_walinspect")
    began = await connection.fetchval("select pg_current_wal_insert_lsn()::text")
    await act()
    await connection.execute("set synchronous_commit to on")
    await connection.execute("select pg_logical_emit_message(true, '', '')")  # what is not flushed cannot be read
    rows = await connection.fetch(
        "select distinct record_type"
        " from pg_get_wal_records_info($1::text::pg_lsn, pg_current_wal_insert_lsn()) as written"
        " join pg_database on datname = current_database()"
        " where written.block_ref like format('%%/%s/%s %%', pg_database.oid, pg_relation_filenode('ready'))",
        began,
    )
    return {row["record_type"] for row in rows}
