"""An application may call its tables what it likes, also under a role that is named like our schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from mainspring.clock import SystemClock
from mainspring.control.doctor import examine
from mainspring.control.findings import Level
from mainspring.store.database import Database
from mainspring.store.migrate import migrate

from .users import query

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.control.findings import Finding
    from mainspring.store.embedded import EmbeddedServer

ORDINARY = {"search_path": '"$user", public'}  # what a server of one's own does by default


async def migrated(server: EmbeddedServer, *before: str) -> list[str]:
    """Migrate, as whoever these statements make of us; answers with what was said that is not about a migration."""
    said: list[str] = []
    connection = await Database(server.dsn).connect("test")
    try:
        for statement in before:
            await connection.execute(statement)
        await migrate(connection, say=said.append)
    finally:
        await connection.close()
    return [sentence for sentence in said if not sentence.startswith("applying")]


async def examined(server: EmbeddedServer) -> Finding:
    connection = await Database(server.dsn).connect("test")
    try:
        return next(each for each in await examine(connection, SystemClock()) if each.check == "search path")
    finally:
        await connection.close()


async def use_tables(server: EmbeddedServer) -> tuple[int, int]:
    """What an application does over a plain connection as the role mainspring."""
    connection = await asyncpg.connect(server.dsn)
    try:
        await connection.execute("create table if not exists lease (flat int, rent int)")
        await connection.execute("create table job (title text, salary int)")
        await connection.execute("insert into lease values (1, 700); insert into job values ('cook', 3000)")
        return await connection.fetchval("select rent from lease"), await connection.fetchval("select salary from job")
    finally:
        await connection.close()


async def test_an_application_has_its_own_job_and_lease_on_the_embedded_server(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    server = acquire()
    await migrated(server)

    assert await use_tables(server) == (700, 3000)
    assert (await examined(server)).level is Level.OK


async def test_the_embedded_server_itself_keeps_the_names_apart(acquire: Callable[..., EmbeddedServer]) -> None:
    server = acquire()
    await migrated(server)
    await query(server.dsn, "alter role mainspring in database mainspring reset search_path")

    assert await use_tables(server) == (700, 3000)


async def test_a_data_directory_from_before_is_upgraded_at_its_next_start(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    former = acquire(settings=ORDINARY)
    await migrated(former)
    await query(former.dsn, "alter role mainspring in database mainspring reset search_path")
    with pytest.raises(asyncpg.PostgresError):
        await use_tables(former)
    former.release()

    assert await use_tables(acquire()) == (700, 3000)


async def test_an_application_has_its_own_job_and_lease_on_a_migrated_server(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    server = acquire(settings=ORDINARY)
    statement = "alter role mainspring in database mainspring set search_path = public"

    assert await migrated(server) == [f"what the role mainspring finds: {statement}"]
    assert await use_tables(server) == (700, 3000)
    assert await migrated(server) == []
    assert (await examined(server)).level is Level.OK


@pytest.mark.parametrize(
    "decision",
    [
        "alter role mainspring in database mainspring set search_path = app",
        "alter role mainspring set search_path = app",
        "alter database mainspring set search_path = app",
    ],
)
async def test_a_search_path_that_someone_decided_about_stays(
    acquire: Callable[..., EmbeddedServer], decision: str
) -> None:
    server = acquire(settings=ORDINARY)
    await query(server.dsn, decision)

    assert await migrated(server) == []
    assert await query(server.dsn, "show search_path") == "app"
    assert (await examined(server)).level is Level.OK


async def test_a_role_that_may_not_alter_ours_leaves_it_to_an_administrator(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    server = acquire(settings=ORDINARY)
    await query(server.dsn, "create role migrator")
    await query(server.dsn, "grant create on database mainspring to migrator")
    said = await migrated(server, "set role migrator")
    finding = await examined(server)

    assert len(said) == 1
    assert "permission denied" in said[0]
    assert said[0].endswith("see mainspring doctor")
    assert finding.level is Level.WARNING
    assert finding.remedy == "alter role mainspring in database mainspring set search_path = public"

    await query(server.dsn, finding.remedy)
    assert await use_tables(server) == (700, 3000)
    assert (await examined(server)).level is Level.OK


async def test_an_application_goes_on_finding_what_it_made_in_our_schema(
    acquire: Callable[..., EmbeddedServer],
) -> None:
    former = acquire(settings=ORDINARY)
    await migrated(former)
    await query(former.dsn, "alter role mainspring in database mainspring reset search_path")
    await query(former.dsn, "create table orders (id serial, amount int)")
    await query(former.dsn, "insert into orders (amount) values (42)")
    former.release()
    server = acquire()
    await migrated(server)
    finding = await examined(server)

    assert await query(server.dsn, "select amount from orders") == 42
    assert finding.level is Level.WARNING
    assert "orders" in finding.says
    assert finding.remedy == (
        "alter table mainspring.orders set schema public;"
        " alter role mainspring in database mainspring set search_path = public"
    )

    for statement in finding.remedy.split("; "):
        await query(server.dsn, statement)
    assert await query(server.dsn, "select amount from orders") == 42
    assert await use_tables(server) == (700, 3000)
    assert (await examined(server)).level is Level.OK
