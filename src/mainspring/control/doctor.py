"""Looks a database over: what is well, what is not, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mainspring.errors import DatabaseUnsuitable, MainspringError, SchemaMismatch
from mainspring.store import health, roles, workers
from mainspring.store.grants import Kind, privileges
from mainspring.store.migrate import OLDEST_SERVER, check_schema, known_migrations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection

CLOCK_WARNING, CLOCK_PROBLEM = 1.0, 3_600.0
TRANSACTION_WARNING, TRANSACTION_PROBLEM = 60.0, 3_600.0
CONNECTIONS_WARNING = 0.8
LANE_BOUND = 100_000
LANE_SKEW, LANE_SKEW_FROM = 5.0, 10_000
DAYS_OK = 2  # the keeper works three days ahead
DEAD_ROWS_FROM = 200_000


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found, and what to do if it is not well."""

    check: str
    level: Level
    says: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What the checks look at."""

    connection: Connection
    clock: Clock
    settings: dict[str, Any]
    lanes: int  # 0 while there is no schema that serves this program


async def examine(connection: Connection, clock: Clock) -> list[Finding]:
    """All findings, in the order in which one would act on them."""
    schema, lanes = await _schema(connection)
    database = Examined(connection=connection, clock=clock, settings=await health.settings_of(connection), lanes=lanes)
    findings = [judge(database.settings) for judge in (_version, _writable, _durability, _autovacuum)]
    findings += [_connections(database.settings), schema]
    for name, check, is_due in _CHECKS:
        if is_due(database):
            findings.append(await _tried(name, check, database))
    return findings


def not_reached(error: MainspringError) -> Finding:
    """The finding for a database that cannot even be asked."""
    return _problem("connection", error.message, error.hint or "")


async def _tried(name: str, check: Callable[[Examined], Awaitable[Finding]], database: Examined) -> Finding:
    try:
        return await check(database)
    except DatabaseUnsuitable as error:
        return _warning(name, f"could not be looked at: {error}", "Run doctor as a user who may see this.")


# ── the server ──────────────────────────────────────────────────────────────────────────────────────────────


def _version(settings: dict[str, Any]) -> Finding:
    kind = "PostgreSQL with Citus" if settings["has_citus"] else "PostgreSQL"
    says = f"{kind} {settings['version']}"
    if settings["major"] < OLDEST_SERVER:
        return _problem("server", says, f"Upgrade to {OLDEST_SERVER} or newer.")
    return _ok("server", says)


def _writable(settings: dict[str, Any]) -> Finding:
    if settings["is_standby"]:
        return _problem("writable", "this is a standby", "Connect to the primary: target_session_attrs=read-write.")
    if settings["is_read_only"]:
        return _problem(
            "writable",
            "transactions are read-only",
            "Reset default_transaction_read_only for this server, database or user.",
        )
    return _ok("writable", "accepts writes")


def _durability(settings: dict[str, Any]) -> Finding:
    names = ("fsync", "full_page_writes", "synchronous_commit")
    off = [name for name in names if settings[name] == "off"]
    if off:
        return _problem("durability", f"{', '.join(off)} off: a crash can lose accepted runs", "Turn it on.")
    if settings["synchronous_commit"] == "local":
        return _warning(
            "durability",
            "synchronous_commit is local: losing this node can lose accepted runs",
            "With synchronous standbys, set it to on.",
        )
    return _ok("durability", ", ".join(f"{name} {settings[name]}" for name in names))


def _autovacuum(settings: dict[str, Any]) -> Finding:
    if settings["autovacuum"] == "off":
        return _problem("autovacuum", "autovacuum is off: dead rows pile up and claims slow down", "Turn it on.")
    return _ok("autovacuum", "on")


def _connections(settings: dict[str, Any]) -> Finding:
    used, most = settings["connections"], settings["max_connections"]
    says = f"{used} of {most} in use"
    if used > most * CONNECTIONS_WARNING:
        return _warning("connections", says, "Raise max_connections, or run fewer processes (each has up to 7).")
    return _ok("connections", says)


async def _clock(database: Examined) -> Finding:
    """Half the round trip is the error of this measurement; the host's time is only used to date ids."""
    before = database.clock.micros() / 1e6
    theirs = await health.database_micros(database.connection) / 1e6
    after = database.clock.micros() / 1e6
    offset = theirs - (before + after) / 2
    says = f"the database is {abs(offset):.3f} s {'ahead of' if offset > 0 else 'behind'} this host"
    if abs(offset) <= CLOCK_WARNING + (after - before):
        return _ok("clock", says)
    level = Level.PROBLEM if abs(offset) > CLOCK_PROBLEM else Level.WARNING
    return Finding(check="clock", level=level, says=says, remedy="Let both follow a time server (NTP).")


async def _transactions(database: Examined) -> Finding:
    rows = await health.long_transactions(database.connection, TRANSACTION_WARNING)
    if not rows:
        return _ok("transactions", f"none open for more than {TRANSACTION_WARNING:.0f} s")
    oldest = rows[0]
    what = " ".join(filter(None, (oldest["user_name"], oldest["application"], oldest["state"])))
    says = f"{len(rows)} open for long; the oldest for {oldest['seconds']:.0f} s (pid {oldest['pid']}: {what})"
    remedy = f"It keeps vacuum from removing dead rows. To end it: select pg_terminate_backend({oldest['pid']})"
    return _by_age("transactions", says, remedy, oldest["seconds"])


async def _prepared(database: Examined) -> Finding:
    rows = await health.prepared_transactions(database.connection, TRANSACTION_WARNING)
    if not rows:
        return _ok("prepared", "no forgotten prepared transaction")
    oldest = rows[0]
    says = f"{len(rows)} left behind; the oldest for {oldest['seconds']:.0f} s ({oldest['gid']!r} of {oldest['owner']})"
    return _by_age("prepared", says, "COMMIT PREPARED or ROLLBACK PREPARED it.", oldest["seconds"])


def _by_age(check: str, says: str, remedy: str, seconds: float) -> Finding:
    level = Level.PROBLEM if seconds > TRANSACTION_PROBLEM else Level.WARNING
    return Finding(check=check, level=level, says=says, remedy=remedy)


# ── our schema ──────────────────────────────────────────────────────────────────────────────────────────────


async def _schema(connection: Connection) -> tuple[Finding, int]:
    try:
        lanes = await check_schema(connection)
    except (SchemaMismatch, DatabaseUnsuitable) as error:
        return _problem("schema", error.message, error.hint or ""), 0
    newest = max(await health.applied_migrations(connection))
    return _ok("schema", f"migration {newest}, serves this program"), lanes


async def _permissions(database: Examined) -> Finding:
    """For which kinds of program the present role is enough; a role that is almost of a kind was meant to be."""
    role, lacks = await roles.present_role(database.connection), await roles.lacking(database.connection)
    enough = [kind for kind in Kind if not lacks[kind]]
    says = f"the role {role} is enough for {_list(enough) or 'no program of ours'}"
    if (almost := _almost(enough, lacks)) is None:
        return _ok("permissions", says) if enough else _problem("permissions", says, _granting(role))
    some = [f"{privilege.upper()} on {thing}" for privilege, thing in sorted(lacks[almost])]
    says += f"; for a {almost} it lacks {', '.join(some[:3])}{' …' if len(some) > 3 else ''}"
    level = Level.WARNING if enough else Level.PROBLEM
    return Finding(check="permissions", level=level, says=says, remedy=_granting(role, almost))


def _granting(role: str, kind: Kind | None = None) -> str:
    return f"As the role that migrates, execute what this prints: {roles.grants_command(role, kind)}"


def _almost(enough: list[Kind], lacks: dict[Kind, set[tuple[str, str]]]) -> Kind | None:
    """The kind that the role lacks least for, if it may write something that only this kind writes."""
    known = {each for kind in enough for each in _written(kind)}
    halves = [kind for kind in Kind if kind not in enough and set(_written(kind)) - lacks[kind] - known]
    return min(halves, key=lambda kind: len(lacks[kind]), default=None)


def _written(kind: Kind) -> Iterator[tuple[str, str]]:
    """What a kind changes: reading says little, and functions are everybody's unless someone took them away."""
    for privilege, table in privileges(kind):
        if privilege != "select":
            yield privilege.split()[0], table


def _list(kinds: list[Kind]) -> str:
    return " and ".join(f"a {kind}" for kind in kinds)


async def _search_path(database: Examined) -> Finding:
    """Whether applications find their own `job` and `lease`: a role named like our schema finds ours first."""
    role = await roles.namesake(database.connection)
    if role is None or not role.is_misled:
        return _ok("search path", "Mainspring's tables hide nobody's")
    # Tables that a newer program made would look like somebody else's.
    is_newer = max(await health.applied_migrations(database.connection)) > known_migrations()[-1].version
    strangers = [] if is_newer else await roles.strangers(database.connection)
    says = "the role mainspring finds Mainspring's tables before an application's of the same name"
    if strangers:
        says += f"; these of others are in Mainspring's schema: {', '.join(row['name'] for row in strangers)}"
    return _warning("search path", says, "; ".join([*(row["remedy"] for row in strangers), role.part]))


async def _lanes(database: Examined) -> Finding:
    waiting = await health.waiting_by_lane(database.connection, database.lanes, LANE_BOUND)
    total, most = sum(waiting), max(waiting)
    full = " or more" if most >= LANE_BOUND else ""
    says = f"{database.lanes} lanes; waiting runs: {total:,}{full}, {min(waiting):,} to {most:,}{full} per lane"
    if total >= LANE_SKEW_FROM and most > LANE_SKEW * total / database.lanes:
        return _warning("lanes", says, "Many idempotency keys fall into one lane? Vary them.")
    return _ok("lanes", says)


async def _partitions(database: Examined) -> Finding:
    days, end = await health.days_with_partitions(database.connection)
    if days == 0:
        return _problem("history", "no partition for today: nothing can be finished", "Run: mainspring migrate")
    says = f"partitions for {days} day(s) from today, until {end:%Y-%m-%d}"
    keepers = await roles.keepers(database.connection)
    if keepers and not any(row["can_add_partitions"] for row in keepers):
        return _nobody_adds_partitions(says, [row["role"] for row in keepers])
    if days <= DAYS_OK:
        return _warning(
            "history",
            says,
            "A worker with a keeper makes them three days ahead: is one running? Else: mainspring migrate",
        )
    return _ok("history", says)


def _nobody_adds_partitions(says: str, keepers: list[str]) -> Finding:
    return _problem(
        "history",
        f"{says}; no keeper may make more, and then nothing can be finished (their role: {', '.join(keepers)})",
        _granting(keepers[0], Kind.WORKER),
    )


async def _workers(database: Examined) -> Finding:
    row = await health.silent_workers(database.connection)
    ended = await workers.ended_with_leases(database.connection, database.lanes)
    says = f"{row['live']} live, {row['unsettled']:,} results not settled yet"
    if row["unable"]:
        return _problem(
            "workers",
            f"{says}; {row['unable']} cannot settle what they executed, and claim nothing",
            "Their logs say why: a lock, a permission, a full disk. If it lasts, their runs start again elsewhere.",
        )
    remedy = "A keeper rescues their runs: start a worker (mainspring worker --app …) and look again."
    if ended:
        return _warning("workers", f"{says}; {len(ended)} ended ones still hold runs", remedy)
    if row["silent"]:
        return _warning("workers", f"{says}, of which {row['silent']} have been silent for long", remedy)
    return _ok("workers", says)


async def _dead_rows(database: Examined) -> Finding:
    rows = await health.tables_with_dead_rows(database.connection, DEAD_ROWS_FROM)
    if not rows:
        return _ok("dead rows", "vacuum keeps up")
    says = ", ".join(f"{row['table_name']} {row['dead']:,}" for row in rows)
    return _warning("dead rows", says, "See 'transactions' above; else give autovacuum more room (cost limits).")


def _ok(check: str, says: str) -> Finding:
    return Finding(check=check, level=Level.OK, says=says)


def _warning(check: str, says: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.WARNING, says=says, remedy=remedy)


def _problem(check: str, says: str, remedy: str) -> Finding:
    return Finding(check=check, level=Level.PROBLEM, says=says, remedy=remedy)


def _always(database: Examined) -> bool:
    return True


def _with_schema(database: Examined) -> bool:
    """There is a schema of ours, which this role may not even see into."""
    return bool(database.settings["has_schema"])


def _with_lanes(database: Examined) -> bool:
    return database.lanes > 0


_CHECKS: tuple[tuple[str, Callable[[Examined], Awaitable[Finding]], Callable[[Examined], bool]], ...] = (
    ("permissions", _permissions, _with_schema),
    ("search path", _search_path, _with_lanes),
    ("clock", _clock, _always),
    ("transactions", _transactions, _always),
    ("prepared", _prepared, _always),
    ("lanes", _lanes, _with_lanes),
    ("history", _partitions, _with_lanes),
    ("workers", _workers, _with_lanes),
    ("dead rows", _dead_rows, _with_lanes),
)
