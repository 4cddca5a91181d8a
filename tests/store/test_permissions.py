"""What is said to roles that lack something, and what `doctor` says before anything goes wrong."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring, wiring
from mainspring.clock import SystemClock
from mainspring.control.doctor import examine
from mainspring.control.findings import Finding, Level
from mainspring.errors import DatabaseUnsuitable, PermissionMissing, ValueNotStorable
from mainspring.keeper.partitioner import Partitioner
from mainspring.store import health
from mainspring.store.database import Database
from mainspring.store.grants import RoleKind, statements
from mainspring.store.migrate import check_schema, migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    NewRole = Callable[..., Awaitable[str]]

# What doctor used to recommend.
ALL_TABLES = "grant usage on schema mainspring to {0}; grant all on all tables in schema mainspring to {0}"


async def examined(connection: Connection, check: str) -> Finding:
    return next(each for each in await examine(connection, SystemClock()) if each.check == check)


@asynccontextmanager
async def acting_as(connection: Connection, role: str) -> AsyncIterator[None]:
    await connection.execute(f"set role {role}")
    yield
    await connection.execute("reset role")


async def denial(work: Awaitable[Any]) -> DatabaseUnsuitable:
    with pytest.raises(DatabaseUnsuitable) as caught:
        await work
    assert caught.value.code == "permission-missing"
    return caught.value


# ── partitions ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_makes_partitions_without_owning_history(
    connection: Connection, new_role: NewRole, clock: FrozenClock
) -> None:
    await clock.freeze(connection)
    role = await new_role(RoleKind.WORKER)
    async with acting_as(connection, role):
        await Partitioner().step(connection)

    days, end = await health.days_with_partitions(connection)
    assert (days, end) == (4, clock.at.date() + timedelta(days=4))
    owner = await connection.fetchval("select relowner::regrole::text from pg_class where oid = 'attempt'::regclass")
    for table in ("attempt", "log", "occurrence"):
        made = f"{table}_{clock.at + timedelta(days=3):%Y%m%d}"
        assert (
            await connection.fetchval("select relowner::regrole::text from pg_class where relname = $1", made) == owner
        )


@pytest.mark.parametrize("kind", [RoleKind.SCHEDULER, RoleKind.CLIENT, RoleKind.READER])
async def test_nobody_else_makes_partitions(connection: Connection, new_role: NewRole, kind: RoleKind) -> None:
    async with acting_as(connection, await new_role(kind)):
        with pytest.raises(PermissionMissing, match="add_history_partition"):
            await connection.fetchval("select add_history_partition(current_date)")


async def test_making_partitions_is_not_everybodys_by_default(connection: Connection) -> None:
    query = "select has_function_privilege('public', $1, 'execute')"

    assert not await connection.fetchval(query, "add_history_partition(date)")
    assert await connection.fetchval(query, "clock_now()")


@pytest.mark.parametrize("offset", [-41, 41, None])
async def test_partitions_are_made_near_the_present_only(
    connection: Connection, clock: FrozenClock, offset: int | None
) -> None:
    await clock.freeze(connection)
    query = "select add_history_partition((clock_now() at time zone 'UTC')::date + $1::int)"

    with pytest.raises(ValueNotStorable, match="more than 40 days from today"):
        await connection.fetchval(query, offset)
    if offset is not None:
        assert await connection.fetchval(query, offset - offset // abs(offset)) is True


async def test_a_table_of_the_callers_own_does_not_come_before_ours(connection: Connection, new_role: NewRole) -> None:
    """The function acts as its owner, so it must not let the caller choose what its words mean."""
    before = await connection.fetchval("select count(*) from pg_inherits where inhparent = 'attempt'::regclass")
    async with acting_as(connection, await new_role(RoleKind.WORKER)):
        await connection.execute("create temp table attempt (id int) on commit drop")
        await connection.execute("set search_path = pg_temp, mainspring")
        assert await connection.fetchval("select mainspring.add_history_partition(current_date + 20)")
    await connection.execute("set search_path = mainspring")

    after = await connection.fetchval("select count(*) from pg_inherits where inhparent = 'attempt'::regclass")
    assert after == before + 1


async def test_doctor_says_beforehand_that_no_keeper_can_make_partitions(
    url: str, connection: Connection, new_role: NewRole
) -> None:
    role = await new_role()
    await connection.execute(ALL_TABLES.format(role))
    keeper = await Database(url.replace("mainspring@", f"{role}@")).connect("keeper")
    finding = await examined(connection, "history")
    _, end = await health.days_with_partitions(connection)

    assert finding.level is Level.PROBLEM
    assert finding.says == (
        f"partitions for 4 day(s) from today, until {end}; no keeper may make more, and then nothing can be finished"
        f" (their role: {role})"
    )
    assert finding.remedy.endswith(f"mainspring grants {role} --for worker")

    for statement in statements(role, [RoleKind.WORKER]):
        await connection.execute(statement)
    assert (await examined(connection, "history")).level is Level.OK
    await Partitioner().step(keeper)
    await keeper.close()


async def test_a_function_whose_owner_does_not_own_history_helps_no_keeper(
    url: str, connection: Connection, new_role: NewRole
) -> None:
    role, owner = await new_role(RoleKind.WORKER), await new_role(RoleKind.WORKER)
    await connection.execute(f"alter function add_history_partition(date) owner to {owner}")
    keeper = await Database(url.replace("mainspring@", f"{role}@")).connect("keeper")

    assert (await examined(connection, "history")).level is Level.PROBLEM
    with pytest.raises(PermissionMissing):
        await keeper.fetchval("select add_history_partition(current_date + 9)")
    await keeper.close()


# ── what doctor says about a role ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        ([RoleKind.WORKER], "a worker"),
        ([RoleKind.SCHEDULER], "a scheduler"),
        ([RoleKind.CLIENT], "a client and a reader"),
        ([RoleKind.READER], "a reader"),
        ([*RoleKind], "a worker and a scheduler and a client and a reader"),
    ],
)
async def test_doctor_says_what_a_role_is_enough_for(
    connection: Connection, new_role: NewRole, kinds: list[RoleKind], says: str
) -> None:
    role = await new_role(*kinds)
    async with acting_as(connection, role):
        findings = await examine(connection, SystemClock())

    permissions = next(each for each in findings if each.check == "permissions")
    assert (permissions.level, permissions.says) == (Level.OK, f"the role {role} is enough for {says}")
    # A scheduler reads nothing of workers, and a worker no schedules.
    unseen = {RoleKind.SCHEDULER: ["workers"], RoleKind.WORKER: ["schedulers", "schedules"]}
    assert [each.check for each in findings if "could not be looked at" in each.says] == (
        unseen.get(kinds[0], []) if len(kinds) == 1 else []
    )


async def test_doctor_says_what_a_role_lacks_for_what_it_was_meant_for(
    connection: Connection, new_role: NewRole
) -> None:
    role = await new_role(RoleKind.WORKER)
    await connection.execute(f"revoke update on lease from {role}")
    async with acting_as(connection, role):
        finding = await examined(connection, "permissions")

    assert finding.level is Level.PROBLEM
    assert finding.says == f"the role {role} is enough for no program of ours; for a worker it lacks UPDATE on lease"
    assert finding.remedy.endswith(f"mainspring grants {role} --for worker")


async def test_doctor_takes_half_a_scheduler_for_one(connection: Connection, new_role: NewRole) -> None:
    role = await new_role(RoleKind.SCHEDULER)
    await connection.execute(f"revoke update on cursor from {role}")
    async with acting_as(connection, role):
        finding = await examined(connection, "permissions")

    assert finding.says.endswith("for a scheduler it lacks UPDATE on cursor")
    assert finding.remedy.endswith(f"mainspring grants {role} --for scheduler")


async def test_doctor_names_what_its_former_advice_left_out(connection: Connection, new_role: NewRole) -> None:
    role = await new_role()
    await connection.execute(ALL_TABLES.format(role))
    await connection.execute("grant execute on all functions in schema mainspring to public")
    await connection.execute("revoke execute on function add_history_partition(date) from public")
    async with acting_as(connection, role):
        finding = await examined(connection, "permissions")

    assert finding.level is Level.WARNING
    assert finding.says.endswith(
        "a scheduler and a client and a reader; for a worker it lacks EXECUTE on add_history_partition(date)"
    )


async def test_doctor_tells_a_role_with_nothing_what_to_ask_for(connection: Connection, new_role: NewRole) -> None:
    role = await new_role()
    async with acting_as(connection, role):
        findings = {each.check: each for each in await examine(connection, SystemClock())}

    assert findings["schema"].level is Level.PROBLEM
    assert "lacks USAGE on the schema mainspring" in findings["schema"].says
    assert f"mainspring grants {role}" in findings["schema"].remedy
    assert findings["permissions"].says == f"the role {role} is enough for no program of ours"
    assert f"mainspring grants {role} --for worker|scheduler|client|reader" in findings["permissions"].remedy


async def test_doctor_says_nothing_of_permissions_where_there_is_no_schema(connection: Connection) -> None:
    await connection.execute("drop schema mainspring cascade")

    findings = {each.check: each for each in await examine(connection, SystemClock())}
    assert findings["schema"].says == "This database has no Mainspring schema yet."
    assert "permissions" not in findings


# ── the right words ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_role_without_usage_is_not_told_to_migrate(connection: Connection, new_role: NewRole) -> None:
    """Without USAGE the tables look as if they were not there."""
    role = await new_role()
    async with acting_as(connection, role):
        error = await denial(check_schema(connection))
        assert error.fields["role"] == role
        await denial(health.applied_migrations(connection))

    assert str(error) == (
        f"The role '{role}' may not work with Mainspring's tables: it lacks USAGE on the schema mainspring."
        " As the role that migrates, execute what this prints:"
        f" mainspring grants {role} --for worker|scheduler|client|reader"
    )


async def test_a_role_without_select_is_told_what_to_ask_for(connection: Connection, new_role: NewRole) -> None:
    role = await new_role()
    await connection.execute(f"grant usage on schema mainspring to {role}")
    async with acting_as(connection, role):
        assert "permission denied for table" in str(await denial(check_schema(connection)))
        await denial(health.applied_migrations(connection))


async def test_an_application_hears_the_same(url: str, new_role: NewRole) -> None:
    role = await new_role()
    location = wiring.DatabaseLocation(url=url.replace("mainspring@", f"{role}@"))
    app = Mainspring(location.url)

    @app.job
    async def work() -> None: ...

    await denial(wiring.open_store(location))
    assert "mainspring grants" in str(await denial(work.submit()))


async def test_a_worker_is_not_the_one_who_migrates(connection: Connection, new_role: NewRole) -> None:
    async with acting_as(connection, await new_role(RoleKind.WORKER)):
        assert "Migrate as the role that owns the schema" in str(await denial(migrate(connection)))
    async with acting_as(connection, await new_role()):
        assert "lacks USAGE" in str(await denial(migrate(connection)))


async def test_who_was_given_the_schema_may_migrate_without_more(connection: Connection, new_role: NewRole) -> None:
    await connection.execute("drop schema mainspring cascade")
    role = await new_role()
    await connection.execute(f"create schema mainspring authorization {role}")
    async with acting_as(connection, role):
        assert await migrate(connection)
        assert await migrate(connection) == []
        assert await check_schema(connection) == 8
