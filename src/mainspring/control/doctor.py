"""Looks a database over: what is well, what is not, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.control import schedule_checks, schema_checks, server_checks
from mainspring.control.findings import Examined, Finding, ok, problem, warning
from mainspring.errors import DatabaseUnsuitable, MainspringError, NodeUnreachable, SchemaMismatch
from mainspring.store import health
from mainspring.store.migrate import check_schema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection


async def examine(connection: Connection, clock: Clock) -> list[Finding]:
    """All findings, in the order in which one would act on them."""
    schema, lanes = await _schema(connection)
    database = Examined(connection=connection, clock=clock, settings=await health.settings_of(connection), lanes=lanes)
    findings = [judge(database.settings) for judge in _JUDGES]
    findings.append(schema)
    for name, check, is_due in _CHECKS:
        if is_due(database):
            findings.append(await _tried(name, check, database))
    return findings


def not_reached(error: MainspringError) -> Finding:
    """The finding for a database that cannot even be asked."""
    return problem("connection", error.message, error.hint or "")


async def _tried(name: str, check: Callable[[Examined], Awaitable[Finding]], database: Examined) -> Finding:
    try:
        return await check(database)
    except NodeUnreachable as error:
        return warning(name, f"could not be looked at: {error.message}", error.hint or "")
    except DatabaseUnsuitable as error:
        return warning(name, f"could not be looked at: {error}", "Run doctor as a user who may see this.")


async def _schema(connection: Connection) -> tuple[Finding, int]:
    try:
        lanes = await check_schema(connection)
    except (SchemaMismatch, DatabaseUnsuitable) as error:
        return problem("schema", error.message, error.hint or ""), 0
    newest = max(await health.applied_migrations(connection))
    return ok("schema", f"migration {newest}, serves this program"), lanes


_JUDGES = (
    server_checks.check_version,
    server_checks.check_writable,
    server_checks.check_durability,
    server_checks.check_autovacuum,
    server_checks.check_connections,
)


def _always(database: Examined) -> bool:
    return True


def _with_schema(database: Examined) -> bool:
    """There is a schema of ours, which this role may not even see into."""
    return bool(database.settings["has_schema"])


def _with_citus(database: Examined) -> bool:
    return bool(database.settings["has_citus"])


def _with_lanes(database: Examined) -> bool:
    return database.lanes > 0


_CHECKS: tuple[tuple[str, Callable[[Examined], Awaitable[Finding]], Callable[[Examined], bool]], ...] = (
    ("nodes", server_checks.check_nodes, _with_citus),
    ("permissions", schema_checks.check_permissions, _with_schema),
    ("search path", schema_checks.check_search_path, _with_lanes),
    ("clock", server_checks.check_clock, _always),
    ("transactions", server_checks.check_transactions, _always),
    ("prepared", server_checks.check_prepared, _always),
    ("jit", server_checks.check_compiling, _with_citus),
    ("lanes", schema_checks.check_lanes, _with_lanes),
    ("history", schema_checks.check_partitions, _with_lanes),
    ("workers", schema_checks.check_workers, _with_lanes),
    ("schedulers", schedule_checks.check_schedulers, _with_lanes),
    ("schedules", schedule_checks.check_undecided, _with_lanes),
    ("dead rows", schema_checks.check_dead_rows, _with_lanes),
)
