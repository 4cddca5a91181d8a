"""Brings a database to the shape this program needs, and decides whether the two can work together.

Migrations are plain SQL files, applied in order, each in a transaction of its own together with the row that says
so. Any number of processes may start at once: one lock lets them take turns, and the primary key of `migration`
would stop them even without it. Migrations expand, then contract: the line `-- serves: N` in a file names the
oldest program (by the newest migration it knew) that still works after it.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnsuitable,
    PermissionMissing,
    SchemaMismatch,
    StoreError,
    shortened,
)
from mainspring.store import history
from mainspring.store.connection import patience, transaction
from mainspring.store.database import SCHEMA
from mainspring.store.distribute import coordinator_elsewhere, distribute, has_citus
from mainspring.store.failures import read_only_error
from mainspring.store.functions import all_functions
from mainspring.store.roles import keep_names_apart, permission_missing, present_role, refuse_without_usage
from mainspring.store.scripts import statements_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mainspring.store.connection import Connection

OLDEST_SERVER = 15
LANES = 8
LANES_ON_CITUS = 64
# While a migration waits for a table, everybody else waits behind it; and where two wait for each other, the migration
# should be the one to let go, before PostgreSQL (after a second) picks a victim.
LOCK_WAIT = "500ms"
TRIES, PAUSE_SECONDS = 60, 1.0
LONGEST_MIGRATION = 86_400.0
_LOCK = 0x6D61696E  # "main": only migrations take this advisory lock
_SERVES = re.compile(r"^-- serves: (\d+)$", re.MULTILINE)
_FUNCTIONS = re.compile(r"^-- functions: ([0-9a-f]+)$", re.MULTILINE)
# Those of Citus mean nothing elsewhere. One lets `set local` reach the nodes, as `set_config` never does; the other has
# a node asked over one connection, without which it does not change functions after tables in one transaction.
_WHILE_MIGRATING = f"""
    set local citus.propagate_set_commands = 'local';
    set local citus.multi_shard_modify_mode = 'sequential';
    set local lock_timeout = '{LOCK_WAIT}'
"""
_LEDGER = """
create table if not exists migration (
    version int primary key,
    name text not null,
    serves int not null,
    checksum text not null,
    applied_at timestamptz not null default now()
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    serves: int
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]

    @property
    def functions(self) -> str | None:
        """The digest of the functions that it creates, if it does: see store/functions.py."""
        named = _FUNCTIONS.search(self.sql)
        return None if named is None else named[1]


def known_migrations(folder: Path | None = None) -> list[Migration]:
    """The migrations this program brings along, in order."""
    files = (folder or resources.files("mainspring.store").joinpath("sql", "migrations")).iterdir()
    return [
        _read(file.name, file.read_text(encoding="utf-8"))
        for file in sorted(files, key=lambda each: each.name)
        if file.name.endswith(".sql")
    ]


def _read(file_name: str, sql: str) -> Migration:
    serves = _SERVES.search(sql)
    if serves is None:
        raise ValueError(f"{file_name} lacks its line '-- serves: N'")
    number, _, name = file_name.removesuffix(".sql").partition("_")
    return Migration(version=int(number), name=name, serves=int(serves[1]), sql=sql)


@cache
def newest_known() -> int:
    """The version of the newest migration that this program brings along."""
    return known_migrations()[-1].version


async def migrate(
    connection: Connection,
    *,
    migrations: list[Migration] | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> list[Migration]:
    """Apply what is missing; answers with what was applied."""
    await check_server(connection)
    if connection.begin_with:
        raise DatabaseUnsuitable(
            "A pooler is between us and PostgreSQL; a migration needs a session of its own.",
            code="sessions-pooled",
            hint="Migrate over a direct connection.",
        )
    if (coordinator := await coordinator_elsewhere(connection)) is not None:
        raise DatabaseUnsuitable(
            f"This is a worker node of a Citus cluster; its schema is changed on the coordinator, {coordinator}.",
            code="not-the-coordinator",
            hint=f"Migrate with a URL that names {coordinator}. Everything else may be asked of any node.",
            coordinator=coordinator,
        )
    with patience(connection, LONGEST_MIGRATION):
        return await _migrate_in_turn(connection, known_migrations() if migrations is None else migrations, say)


async def _migrate_in_turn(
    connection: Connection, migrations: list[Migration], say: Callable[[str], None]
) -> list[Migration]:
    await connection.execute("set statement_timeout = 0; set lock_timeout = 0")  # an index may take its time
    await connection.execute("select pg_advisory_lock($1)", _LOCK)
    try:
        await _prepare_schema(connection)
        missing = await _missing(connection, migrations)
        for migration in missing:
            say(f"applying {migration.version:04} {migration.name.replace('_', ' ')}")
            await _apply(connection, migration, _functions_with(migration, missing), say)
        lanes = await _settled_lanes(connection)
        await distribute(connection, lanes, say)
        await connection.execute(
            "insert into lane (lane) select generate_series(0, $1 - 1) on conflict do nothing", lanes
        )
        await history.add_partitions(connection)
        await keep_names_apart(connection, say)
        return missing
    except PermissionMissing as error:
        raise await _not_the_owner(connection, error) from error
    finally:
        await connection.execute("select pg_advisory_unlock($1)", _LOCK)
        await connection.execute("reset statement_timeout; reset lock_timeout")


async def check_server(connection: Connection) -> None:
    """Refuse a server that is too old or takes no writes."""
    version = connection.get_server_version()
    if version.major < OLDEST_SERVER:
        raise DatabaseUnsuitable(
            f"The server is PostgreSQL {version.major}; Mainspring needs {OLDEST_SERVER} or newer.",
            code="server-too-old",
            hint="Upgrade the server, or unset MAINSPRING_DATABASE_URL to use the embedded one.",
        )
    if await connection.fetchval("select pg_is_in_recovery() or current_setting('transaction_read_only')::bool"):
        raise read_only_error()


async def _prepare_schema(connection: Connection) -> None:
    if await connection.fetchval("select exists (select from pg_namespace where nspname = $1)", SCHEMA):
        await refuse_without_usage(connection)
    else:
        await _create_schema(connection)
    await connection.execute(_LEDGER)


async def _create_schema(connection: Connection) -> None:
    try:
        await connection.execute(f"create schema if not exists {SCHEMA}")
    except PermissionMissing as error:
        raise DatabaseUnsuitable(
            f"This user may not create Mainspring's schema: {error.fields['said']}.",
            code="permission-missing",
            hint=f"As an administrator: GRANT CREATE ON DATABASE … TO …; or create the schema {SCHEMA} for it.",
        ) from error


async def _not_the_owner(connection: Connection, error: PermissionMissing) -> PermissionMissing:
    role = await present_role(connection)
    return PermissionMissing(
        f"The role {shortened(role)} may not change Mainspring's tables: {error.fields.get('said', error.message)}.",
        hint=f"Migrate as the role that owns the schema {SCHEMA}: the one that migrated first.",
        role=role,
    )


async def _missing(connection: Connection, migrations: list[Migration]) -> list[Migration]:
    applied = {row["version"] for row in await connection.fetch("select version from migration")}
    return [migration for migration in migrations if migration.version not in applied]


def _functions_with(migration: Migration, missing: list[Migration]) -> list[str]:
    """What creates the functions: with the last migration that says so, for earlier ones may lack what they need."""
    saying = [each for each in missing if each.functions]
    return list(all_functions().values()) if saying and migration is saying[-1] else []


async def _apply(
    connection: Connection, migration: Migration, functions: list[str], say: Callable[[str], None]
) -> None:
    """Apply one migration between the transactions of programs that work on; when they are in the way, try again."""
    for tries_left in reversed(range(TRIES)):
        try:
            await _try(connection, migration, functions)
        except DatabaseBusy as error:
            if not tries_left:
                raise StoreError(
                    f"Migration {migration.version:04} waited in vain for others to let go of a table: {error}.",
                    code="migration-blocked",
                    hint="Look for a transaction that was left open (mainspring doctor), end it and migrate again.",
                ) from error
            say("waiting for a table that others use")
            await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE_SECONDS)
        else:
            return


async def _try(connection: Connection, migration: Migration, functions: list[str]) -> None:
    async with transaction(connection):
        await connection.execute(_WHILE_MIGRATING)
        for statement in [*statements_of(migration.sql), *functions]:
            await connection.execute(statement)
        await connection.execute(
            "insert into migration (version, name, serves, checksum) values ($1, $2, $3, $4)",
            migration.version,
            migration.name,
            migration.serves,
            migration.checksum,
        )


async def _settled_lanes(connection: Connection) -> int:
    """How many lanes there are. That is fixed for life: the first migration decides."""
    lanes = LANES_ON_CITUS if await has_citus(connection) else LANES
    await connection.execute(
        "insert into setting (name, value) values ('lanes', $1) on conflict do nothing", str(lanes)
    )
    return int(await connection.fetchval("select value::int from setting where name = 'lanes'"))


async def installation_of(connection: Connection) -> str:
    """The id of this installation, by which it is told apart from every other one."""
    return str(await connection.fetchval("select installation_id()"))


async def check_schema(connection: Connection) -> int:
    """Refuse to work with a schema that does not serve this program; answers with the number of lanes."""
    try:
        schema = await connection.fetchrow(
            "select (select max(version) from migration) as version, (select max(serves) from migration) as serves,"
            " (select value::int from setting where name = 'lanes') as lanes"
        )
    except SchemaMismatch:
        await refuse_without_usage(connection)
        schema = None
    except PermissionMissing as error:
        raise await permission_missing(connection, error.fields["said"]) from error
    if schema is None or schema["version"] is None or schema["lanes"] is None:
        raise SchemaMismatch(
            "This database has no Mainspring schema yet.",
            code="schema-missing",
            hint="Run: mainspring migrate",
        )
    if schema["version"] < newest_known():
        raise SchemaMismatch(
            f"The schema is at migration {schema['version']}; this program needs {newest_known()}.",
            code="schema-too-old",
            hint="Run: mainspring migrate",
        )
    if schema["serves"] > newest_known():
        raise SchemaMismatch(
            f"The schema no longer serves this program: it needs one that knows migration {schema['serves']},"
            f" and this one knows {newest_known()}.",
            code="program-too-old",
            hint="Upgrade the mainspring package.",
        )
    return int(schema["lanes"])
