"""What doctor asks of the server: version, settings, connections, clock, transactions left open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.control.findings import Finding, Level, ok, problem, warning
from mainspring.store import health
from mainspring.store.distribute import nodes_that_compile
from mainspring.store.migrate import OLDEST_SERVER
from mainspring.store.roles import present_role

if TYPE_CHECKING:
    from mainspring.control.findings import Examined

CLOCK_WARNING, CLOCK_PROBLEM = 1.0, 3_600.0
TRANSACTION_WARNING, TRANSACTION_PROBLEM = 60.0, 3_600.0
CONNECTIONS_WARNING = 0.8


def check_version(settings: dict[str, Any]) -> Finding:
    kind = "PostgreSQL with Citus" if settings["has_citus"] else "PostgreSQL"
    says = f"{kind} {settings['version']}"
    if settings["major"] < OLDEST_SERVER:
        return problem("server", says, f"Upgrade to {OLDEST_SERVER} or newer.")
    return ok("server", says)


def check_writable(settings: dict[str, Any]) -> Finding:
    if settings["is_standby"]:
        return problem("writable", "this is a standby", "Connect to the primary: target_session_attrs=read-write.")
    if settings["is_read_only"]:
        return problem(
            "writable",
            "transactions are read-only",
            "Reset default_transaction_read_only for this server, database or user.",
        )
    return ok("writable", "accepts writes")


def check_durability(settings: dict[str, Any]) -> Finding:
    names = ("fsync", "full_page_writes", "synchronous_commit")
    off = [name for name in names if settings[name] == "off"]
    if off:
        return problem("durability", f"{', '.join(off)} off: a crash can lose accepted runs", "Turn it on.")
    if settings["synchronous_commit"] == "local":
        return warning(
            "durability",
            "synchronous_commit is local: losing this node can lose accepted runs",
            "With synchronous standbys, set it to on.",
        )
    return ok("durability", ", ".join(f"{name} {settings[name]}" for name in names))


async def check_nodes(database: Examined) -> Finding:
    """Of a Citus cluster: whether each can be reached from the one that we ask."""
    nodes = await health.nodes(database.connection)
    down = [node for node, is_reached in nodes.items() if not is_reached]
    if down:
        return problem(
            "nodes",
            f"{', '.join(down)} cannot be reached: what is there waits",
            "Start PostgreSQL there, or look at the network in between. Workers go on by themselves.",
        )
    return ok("nodes", f"{len(nodes)} of {len(nodes)} answer")


def check_autovacuum(settings: dict[str, Any]) -> Finding:
    if settings["autovacuum"] == "off":
        return problem("autovacuum", "autovacuum is off: dead rows pile up and claims slow down", "Turn it on.")
    return ok("autovacuum", "on")


def check_connections(settings: dict[str, Any]) -> Finding:
    used, most = settings["connections"], settings["max_connections"]
    says = f"{used} of {most} in use"
    if used > most * CONNECTIONS_WARNING:
        return warning("connections", says, "Raise max_connections, or run fewer processes (each has up to 7).")
    return ok("connections", says)


async def check_clock(database: Examined) -> Finding:
    """Half the round trip is the error of this measurement; the host's time is only used to date ids."""
    before = database.clock.micros() / 1e6
    theirs = await health.database_micros(database.connection) / 1e6
    after = database.clock.micros() / 1e6
    offset = theirs - (before + after) / 2
    says = f"the database is {abs(offset):.3f} s {'ahead of' if offset > 0 else 'behind'} this host"
    if abs(offset) <= CLOCK_WARNING + (after - before):
        return ok("clock", says)
    level = Level.PROBLEM if abs(offset) > CLOCK_PROBLEM else Level.WARNING
    return Finding(check="clock", level=level, says=says, remedy="Let both follow a time server (NTP).")


async def check_transactions(database: Examined) -> Finding:
    rows = await health.long_transactions(database.connection, TRANSACTION_WARNING)
    if not rows:
        return ok("transactions", f"none open for more than {TRANSACTION_WARNING:.0f} s")
    oldest = rows[0]
    what = " ".join(filter(None, (oldest["user_name"], oldest["application"], oldest["state"])))
    says = f"{len(rows)} open for long; the oldest for {oldest['seconds']:.0f} s (pid {oldest['pid']}: {what})"
    remedy = f"It keeps vacuum from removing dead rows. To end it: select pg_terminate_backend({oldest['pid']})"
    return _by_age("transactions", says, remedy, oldest["seconds"])


async def check_prepared(database: Examined) -> Finding:
    rows = await health.prepared_transactions(database.connection, TRANSACTION_WARNING)
    if not rows:
        return ok("prepared", "no forgotten prepared transaction")
    oldest = rows[0]
    says = f"{len(rows)} left behind; the oldest for {oldest['seconds']:.0f} s ({oldest['gid']!r} of {oldest['owner']})"
    return _by_age("prepared", says, "COMMIT PREPARED or ROLLBACK PREPARED it.", oldest["seconds"])


async def check_compiling(database: Examined) -> Finding:
    nodes = await nodes_that_compile(database.connection)
    if not nodes:
        return ok("jit", "no node compiles queries")
    role, name = await present_role(database.connection), database.settings["database"]
    return warning(
        "jit",
        f"{', '.join(nodes)} compile queries: what takes milliseconds may take seconds",
        f'On the coordinator, for all nodes: ALTER ROLE "{role}" IN DATABASE "{name}" SET jit = off',
    )


def _by_age(check: str, says: str, remedy: str, seconds: float) -> Finding:
    level = Level.PROBLEM if seconds > TRANSACTION_PROBLEM else Level.WARNING
    return Finding(check=check, level=level, says=says, remedy=remedy)
