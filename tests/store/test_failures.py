"""What a database may say, and what it means: one table, and nothing of the driver's behind it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncpg
import pytest
from tests.waiting import HANGS, until

from mainspring import errors
from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    DatabaseUnsuitable,
    NodeUnreachable,
    OutcomeUnknown,
    PartitionMissing,
    PermissionMissing,
    RowExists,
    SchemaMismatch,
    StoreError,
    ValueNotStorable,
)
from mainspring.store.failures import meaning_of, translated

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

MEANINGS = {
    "08006": DatabaseUnreachable,
    "08P01": DatabaseUnreachable,
    "57P01": DatabaseUnreachable,
    "57P03": DatabaseUnreachable,
    "57P05": DatabaseUnreachable,
    "53300": DatabaseUnreachable,
    "25P03": DatabaseUnreachable,
    "25P04": DatabaseUnreachable,
    "40001": DatabaseBusy,
    "40P01": DatabaseBusy,
    "55P03": DatabaseBusy,
    "57014": DatabaseBusy,
    "53200": DatabaseBusy,
    "53100": DatabaseUnsuitable,
    "25006": DatabaseUnsuitable,
    "28P01": DatabaseUnsuitable,
    "3D000": DatabaseUnsuitable,
    "42501": PermissionMissing,
    "3F000": SchemaMismatch,
    "42P01": SchemaMismatch,
    "42883": SchemaMismatch,
    "22P05": ValueNotStorable,
    "54000": ValueNotStorable,
    "23505": RowExists,
    "XX000": StoreError,
    "58030": StoreError,
    "0A000": StoreError,
    "": StoreError,
}


@pytest.mark.parametrize(("sqlstate", "kind"), MEANINGS.items())
def test_every_class_of_error_has_its_meaning(sqlstate: str, kind: type[Exception]) -> None:
    assert meaning_of(sqlstate).kind is kind


def test_every_error_of_the_driver_is_translated_into_one_of_ours() -> None:
    for kind in vars(asyncpg.exceptions).values():
        if isinstance(kind, type) and issubclass(kind, asyncpg.PostgresError):
            meaning = translated(kind("it said so"))
            assert isinstance(meaning, errors.MainspringError), kind
            assert "it said so" in str(meaning) or meaning.code in ("database-disk-full", "database-read-only")


def test_a_fault_of_ours_stays_what_it_is() -> None:
    fault = KeyError("ours")

    assert translated(fault) is fault


FAULTS = {
    "select 1 / 0": ValueNotStorable,
    HANGS: DatabaseBusy,
    "select * from nothing": SchemaMismatch,
    "insert into setting select * from setting": RowExists,
    "select pg_terminate_backend(pg_backend_pid())": DatabaseUnreachable,
    "do $$ begin raise exception 'internal' using errcode = 'XX000'; end $$": StoreError,
    "insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,"
    " state, due_at, codec, submitted_at, recorded_at) values (0, gen_random_uuid(), 1, 1, 1, 1, 1, 1, 5, 'succeeded',"
    " 'succeeded', now(), 0, now(), '1999-01-01')": PartitionMissing,
}


@pytest.mark.parametrize(("sql", "kind"), FAULTS.items())
async def test_what_a_real_server_says_is_translated(connection: Connection, sql: str, kind: type[Exception]) -> None:
    if sql == HANGS:
        await connection.execute("set statement_timeout = '50ms'")

    for ask in (connection.execute, connection.fetch):
        with pytest.raises(kind) as caught:
            await ask(sql)
        assert type(caught.value) is kind
        assert isinstance(caught.value, errors.MainspringError)
        if connection.is_closed():
            break


async def test_a_lock_that_others_hold_is_told_as_such(connection: Connection, database: Database) -> None:
    holder = await database.connect("holder")
    await connection.execute("set lock_timeout = '50ms'")
    async with holder.transaction():
        await holder.execute("lock table ready in share mode")
        with pytest.raises(DatabaseBusy) as caught:
            await connection.execute("delete from ready")

    assert caught.value.code == "database-busy"
    await holder.close()


async def test_a_missing_partition_is_made_and_the_same_is_tried_again(
    connection: Connection, database: Database
) -> None:
    await connection.execute("set timezone = 'UTC'")
    (partition,) = await connection.fetchrow("select 'attempt_' || to_char(clock_now(), 'YYYYMMDD')")
    await connection.execute(f"drop table {partition}")  # a name of ours

    assert await database.has_repaired(PartitionMissing("none for today"))
    assert await connection.fetchval("select to_regclass($1)", partition) is not None
    assert not await database.has_repaired(DatabaseBusy("a lock"))


async def test_a_statement_that_is_cancelled_by_its_caller_leaves_the_pool_usable(database: Database) -> None:
    async def linger() -> None:
        async with database.acquire() as connection:
            pids.append(connection.get_server_pid())
            await connection.execute(HANGS)

    pids: list[int] = []
    lingering = asyncio.create_task(linger())
    await until(lambda: pids)
    lingering.cancel()
    await asyncio.gather(lingering, return_exceptions=True)

    for _ in range(4):
        async with database.acquire() as connection:
            assert await connection.fetchval("select 1") == 1


# ── of a cluster ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            asyncpg.ConnectionFailureError,
            "connection to the remote node ada@10.0.0.2:5432 failed with the following error: refused",
        ),
        (asyncpg.ConnectionFailureError, "could not establish any connections to the node 10.0.0.2:5432 after 5000 ms"),
        (asyncpg.InternalServerError, "failure on connection marked as essential: 10.0.0.2:5432"),
    ],
)
def test_a_coordinator_says_which_node_cannot_be_reached(kind: type[asyncpg.PostgresError], words: str) -> None:
    error = translated(kind(words))

    assert isinstance(error, NodeUnreachable)
    assert (error.code, error.node) == ("node-unreachable", "10.0.0.2:5432")
    assert error.message.startswith("The node 10.0.0.2:5432 of the database cluster cannot be reached: ")


def test_a_commit_that_a_node_did_not_answer_is_unknown() -> None:
    words = "could not commit transaction for shard 102037 on at least one active node"

    assert isinstance(translated(asyncpg.InternalServerError(words)), OutcomeUnknown)


def test_a_lane_that_has_just_moved_is_worth_another_try() -> None:
    words = "cannot execute a distributed query from a query on a shard"

    assert isinstance(translated(asyncpg.InternalServerError(words)), DatabaseBusy)


def test_a_connection_of_ours_that_breaks_is_no_nodes() -> None:
    error = translated(asyncpg.ConnectionFailureError("connection to server failed"))

    assert type(error) is DatabaseUnreachable
