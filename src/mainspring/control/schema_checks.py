"""What doctor asks of Mainspring's own schema: permissions, lanes, history, workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.control.findings import Finding, Level, ok, problem, warning
from mainspring.store import health, roles, workers
from mainspring.store.grants import RoleKind, privileges
from mainspring.store.migrate import known_migrations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring.control.findings import Examined

LANE_BOUND = 100_000
LANE_SKEW, LANE_SKEW_FROM = 5.0, 10_000
DAYS_OK = 2  # the keeper works three days ahead
DEAD_ROWS_FROM = 200_000


async def check_permissions(database: Examined) -> Finding:
    """For which kinds of program the present role is enough; a role that is almost of a kind was meant to be."""
    role, lacks = await roles.present_role(database.connection), await roles.lacking(database.connection)
    enough = [kind for kind in RoleKind if not lacks[kind]]
    says = f"the role {role} is enough for {_list(enough) or 'no program of ours'}"
    if (almost := _almost(enough, lacks)) is None:
        return ok("permissions", says) if enough else problem("permissions", says, _granting(role))
    some = [f"{privilege.upper()} on {thing}" for privilege, thing in sorted(lacks[almost])]
    says += f"; for a {almost} it lacks {', '.join(some[:3])}{' …' if len(some) > 3 else ''}"
    level = Level.WARNING if enough else Level.PROBLEM
    return Finding(check="permissions", level=level, says=says, remedy=_granting(role, almost))


def _granting(role: str, kind: RoleKind | None = None) -> str:
    return f"As the role that migrates, execute what this prints: {roles.grants_command(role, kind)}"


def _almost(enough: list[RoleKind], lacks: dict[RoleKind, set[tuple[str, str]]]) -> RoleKind | None:
    """The kind that the role lacks least for, if it may write something that only this kind writes."""
    known = {each for kind in enough for each in _written(kind)}
    halves = [kind for kind in RoleKind if kind not in enough and set(_written(kind)) - lacks[kind] - known]
    return min(halves, key=lambda kind: len(lacks[kind]), default=None)


def _written(kind: RoleKind) -> Iterator[tuple[str, str]]:
    """What a kind changes: reading says little, and functions are everybody's unless someone took them away."""
    for privilege, table in privileges(kind):
        verb = privilege.split()[0]  # without the column, if it is about one only
        if verb != "select":
            yield verb, table


def _list(kinds: list[RoleKind]) -> str:
    return " and ".join(f"a {kind}" for kind in kinds)


async def check_search_path(database: Examined) -> Finding:
    """Whether applications find their own `job` and `lease`: a role named like our schema finds ours first."""
    role = await roles.namesake(database.connection)
    if role is None or not role.is_misled:
        return ok("search path", "Mainspring's tables hide nobody's")
    # Tables that a newer program made would look like somebody else's.
    is_newer = max(await health.applied_migrations(database.connection)) > known_migrations()[-1].version
    strangers = [] if is_newer else await roles.strangers(database.connection)
    says = "the role mainspring finds Mainspring's tables before an application's of the same name"
    if strangers:
        says += f"; these of others are in Mainspring's schema: {', '.join(row['name'] for row in strangers)}"
    return warning("search path", says, "; ".join([*(row["remedy"] for row in strangers), role.part]))


async def check_lanes(database: Examined) -> Finding:
    waiting = await health.waiting_by_lane(database.connection, database.lanes, LANE_BOUND)
    total, most = sum(waiting), max(waiting)
    full = " or more" if most >= LANE_BOUND else ""
    says = f"{database.lanes} lanes; waiting runs: {total:,}{full}, {min(waiting):,} to {most:,}{full} per lane"
    if total >= LANE_SKEW_FROM and most > LANE_SKEW * total / database.lanes:
        return warning("lanes", says, "Many idempotency keys fall into one lane? Vary them.")
    return ok("lanes", says)


async def check_partitions(database: Examined) -> Finding:
    days, end = await health.days_with_partitions(database.connection)
    if days == 0:
        return problem("history", "no partition for today: nothing can be finished", "Run: mainspring migrate")
    says = f"partitions for {days} day(s) from today, until {end:%Y-%m-%d}"
    keepers = await roles.keepers(database.connection)
    if keepers and not any(row["can_add_partitions"] for row in keepers):
        return _nobody_adds_partitions(says, [row["role"] for row in keepers])
    if days <= DAYS_OK:
        return warning(
            "history",
            says,
            "A worker with a keeper makes them three days ahead: is one running? Else: mainspring migrate",
        )
    return ok("history", says)


def _nobody_adds_partitions(says: str, keepers: list[str]) -> Finding:
    return problem(
        "history",
        f"{says}; no keeper may make more, and then nothing can be finished (their role: {', '.join(keepers)})",
        _granting(keepers[0], RoleKind.WORKER),
    )


async def check_workers(database: Examined) -> Finding:
    row = await health.silent_workers(database.connection)
    ended = await workers.ended_with_leases(database.connection, database.lanes)
    says = f"{row['live']} live, {row['unsettled']:,} results not settled yet"
    if row["unable"]:
        return problem(
            "workers",
            f"{says}; {row['unable']} cannot settle what they executed, and claim nothing",
            "Their logs say why: a lock, a permission, a full disk. If it lasts, their runs start again elsewhere.",
        )
    remedy = "A keeper rescues their runs: start a worker (mainspring worker --app …) and look again."
    if ended:
        return warning("workers", f"{says}; {len(ended)} ended ones still hold runs", remedy)
    if row["silent"]:
        return warning("workers", f"{says}, of which {row['silent']} have been silent for long", remedy)
    return ok("workers", says)


async def check_dead_rows(database: Examined) -> Finding:
    rows = await health.tables_with_dead_rows(database.connection, DEAD_ROWS_FROM)
    if not rows:
        return ok("dead rows", "vacuum keeps up")
    says = ", ".join(f"{row['table_name']} {row['dead']:,}" for row in rows)
    return warning("dead rows", says, "See 'transactions' above; else give autovacuum more room (cost limits).")
