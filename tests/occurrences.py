"""Compares the ledger of schedules, and their runs, with an independent calculation: what is missing, what is extra.

    expected = {"hourly": instants("0 * * * *", after=began, until=now)}
    assert await verdict(connection, expected) == NOTHING_WRONG

The instants are walked one by one with the pure package `schedule/`; the SQL is written here, apart from the store's
own statements, on purpose. Schedules that were deleted count under the name they had.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.schedule.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from mainspring.store.connection import Connection

# What the headers of a run say, in the short form or in the long one: its schedule, and the instant it is for.
SCHEDULE_OF = "coalesce(headers ->> 'schedule', split_part(headers ->> '@occurrence', ' ', 4))"
NOMINAL_OF = """coalesce((headers ->> 'occurrence')::timestamptz,
    to_timestamp(split_part(headers ->> '@occurrence', ' ', 2)::double precision))"""
IS_OF_INSTANT = "headers ?| '{occurrence,@occurrence}'"

# Every run that a schedule made, wherever it is; triggered ones have no instant.
_RUNS = f"""
select id, {SCHEDULE_OF} as name, {NOMINAL_OF} as nominal_at from (
    select id, headers from ready union all select id, headers from later union all select id, headers from held
    union all select id, headers from dead
    union all select run.id, run.headers from lease cross join lateral unnest(lease.runs) with ordinality as run
    where get_bit(lease.done, run.ordinality::int - 1) = 0
    union all select distinct run_id, headers from attempt
) as placed where {IS_OF_INSTANT}
"""  # noqa: S608
_LEDGER = """
with named as (select id, name from schedule union select schedule_id, name from schedule_version)
select name, nominal_at, run_id
from (select * from occurrence union all select * from occurrence_past) as fired join named on named.id = schedule_id
"""
_SKIPPED = """
with named as (select id, name from schedule union select schedule_id, name from schedule_version)
select name, first_at, last_at from skipped join named on named.id = schedule_id
"""


class Instant(NamedTuple):
    """One nominal instant of one schedule."""

    schedule: str
    nominal_at: datetime


class Verdict(NamedTuple):
    """Where ledger and runs differ from the calculation."""

    missing: list[Instant]  # nobody says what became of it, or the run that the ledger names is nowhere
    extra: list[Instant]  # decided though it is none, decided twice, or a run that the ledger does not know


NOTHING_WRONG = Verdict([], [])


def instants(when: str, *, after: datetime, until: datetime, name: str = "", **settings: Any) -> list[datetime]:
    """All instants of a schedule after the one and up to the other."""
    schedule, found = Schedule.parse(when, **settings), []
    following = schedule.next_after(after, job=name)
    while following is not None and following.nominal_at <= until:
        found.append(following.nominal_at)
        following = schedule.next_after(following.nominal_at, job=name)
    return found


async def fired(connection: Connection) -> dict[str, list[datetime]]:
    """The instants that became runs, by schedule, in order: as the runs themselves say."""
    found: dict[str, list[datetime]] = {}
    for row in await connection.fetch(f"{_RUNS} order by nominal_at"):
        found.setdefault(row["name"], []).append(row["nominal_at"])
    return found


async def verdict(connection: Connection, expected: Mapping[str, Iterable[datetime]]) -> Verdict:
    """Each of the expected instants has one outcome, nothing else has any, and each that fired has its one run."""
    wanted = {Instant(name, at) for name, each in expected.items() for at in each}
    runs = {row["id"]: Instant(row["name"], row["nominal_at"]) for row in await connection.fetch(_RUNS)}
    ledger = {row["run_id"]: Instant(row["name"], row["nominal_at"]) for row in await connection.fetch(_LEDGER)}
    outcomes = Counter(ledger.values())
    for name, first_at, last_at in await connection.fetch(_SKIPPED):
        outcomes.update(each for each in wanted if each.schedule == name and first_at <= each.nominal_at <= last_at)
    undecided = [each for each in wanted if not outcomes[each]]
    lost = [each for run_id, each in ledger.items() if run_id not in runs]
    wrong = [each for each, times in outcomes.items() if times > 1 or (times and each not in wanted)]
    stray = [each for run_id, each in runs.items() if ledger.get(run_id) != each]
    return Verdict(missing=sorted(undecided + lost), extra=sorted(wrong + stray))
