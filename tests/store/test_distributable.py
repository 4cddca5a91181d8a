"""Every hot statement and every key names its lane: what distribution over several nodes takes, from the first day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring.store.distribute import MOVING, SHARED
from mainspring.store.statements import Statement, all_statements, load

from .reading import is_hot, names_one_lane, touches, written
from .routines import inside

if TYPE_CHECKING:
    import asyncpg

# Statements that touch several lanes, and why they may. None of them is hot.
SEVERAL_LANES = {
    "calendars/users": "for people: each lane by its own index scan; and for a scheduler, of one lane",
    "health/activity": "for people who watch",
    "health/finished": "for people who watch",
    "health/lanes": "for people who watch",
    "health/latest": "for people who watch",
    "history/outcomes_of_worker": "for tests",
    "health/schedules_paused_by": "for people who watch",
    "health/failures": "for people who watch",
    "health/lateness": "for people who watch",
    "leases/of_worker": "a worker has leases in all lanes, and asks once per beat",
    "restoring/running": "for people, before all lanes are restored",
    "queues/pressure": "for people, and producers who can wait: each lane by its own index scan",
    "queues/scheduled": "for people, and producers who can wait: each lane by its own index scan",
    "queues/depths": "one look that saves a look per lane and line",
    "limits/follow_on_dead": "for people, who change a limit: slots are few",
    "limits/free_dead": "for people, who change a limit: slots are few",
    "lists/counts": "for people: each lane by its own index scan",
    "lists/running_counts": "for people: leases are few",
    "lists/ended": "for people: history by job, of all lanes or one",
    "lists/placed": "for people: each lane by its own index scan",
    "lists/placed_of_jobs": "for people: each lane by its own index scan",
    "lists/ready_of_jobs": "for people: each lane by its own index scan",
    "lists/running": "for people: leases are few",
    "lists/unsuccessful": "for people: history by job, of all lanes or one",
    "runs/ahead": "for people: each lane by its own index scan",
    "runs/lines_in_use": "one look that saves a look per lane and line; not on a cluster",
    "runs/lines_to_rerank": "one look that saves a look per lane and line",
    "runs/lanes_to_keep": "one look that saves a look per lane, of each duty",
    "runs/lanes_to_tidy": "one look that saves a look per lane",
    "runs/next_due": "one look that saves a look per lane and priority",
    "runs/of_job": "for tests of applications",
    "runs/waiting_lines": "one look that saves a look per lane and line",
    "schedules/computed_by": "one look that saves a look per lane",
    "schedules/declared": "for people, at a deploy",
    "schedules/extent": "for people: as many as a bound",
    "schedules/list": "for people: each lane by its own index scan",
    "schedules/failing": "one look that saves a look per lane",
    "schedules/fired_since": "for tests of applications",
    "schedules/list_due": "for people: each lane by its own index scan",
    "schedules/list_of_job": "for people: each lane by its own index scan",
    "schedules/scan_end": "for people: each lane by its own index scan",
    "schedules/scan_end_of_job": "for people: each lane by its own index scan",
    "schedules/next_due": "one look that saves a look per lane",
    "schedules/sample_specs": "for people: some pages of the table",
    "schedules/specs": "for people: each lane by its own index scan",
    "health/workers": "for people who watch",
    "queues/tallies": "a few lanes: all workers have their homes in them",
    "schedulers/list": "a few lanes: all schedulers have their homes in them",
    "schedulers/list_in_reach": "a few lanes: all schedulers have their homes in them",
    "schedulers/remove": "once in the life of a scheduler",
    "workers/count_heartbeats": "once in the life of a worker",
    "workers/check_writable": "none: it takes a lock and changes nothing",
    "workers/heartbeats": "for people",
    "workers/holders": "for people: a few lanes, in which all workers have their homes",
    "workers/prune_heartbeats": "once an hour",
    "workers/pulses": "a few lanes: all workers have their homes in them",
    "workers/with_tallies": "once an hour",
    "workers/lost": "a lost worker may have leases in all lanes",
}

STATEMENTS = list(all_statements())


def lapses(statement: Statement) -> list[str]:
    """The moving tables a statement touches, itself or by a function, without confining itself to one lane."""
    return [
        f"{touch.how} {touch.table}"
        for each in (statement, *inside(statement))
        for touch in touches(each)
        if touch.table in MOVING and not names_one_lane(each, touch)
    ]


# ── the statements ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_a_statement_names_its_lane_for_every_moving_table_at_every_level(statement: Statement) -> None:
    if statement.name in SEVERAL_LANES:
        assert lapses(statement), "it is listed as touching several lanes and does not"
    else:
        assert lapses(statement) == []


def test_no_hot_statement_touches_several_lanes() -> None:
    hot = {statement.name for statement in STATEMENTS if is_hot(statement)}

    assert {"runs/claim", "runs/promote", "leases/settle", "leases/close"} <= hot
    assert not hot & set(SEVERAL_LANES)


def test_every_exception_exists() -> None:
    assert set(SEVERAL_LANES) <= {statement.name for statement in STATEMENTS}


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("select from ready where id = :id::uuid", ["from ready"]),
        ("select from ready where lane = any (:lane::smallint[])", ["from ready"]),
        ("select from ready where lane > :lane::smallint", ["from ready"]),
        ("delete from ready where lane = :lane::smallint and id in (select id from later)", ["from later"]),
        ("with few as (select from held) select from ready where lane = :lane::smallint", ["from held"]),
        ("select from ready where lane = :lane::smallint union all select from dead", ["from dead"]),
        ("select from ready join lease on true where ready.lane = :lane::smallint", ["join lease"]),
        ("select from ready as a join ready as b on a.lane = :lane::smallint", ["join ready"]),
        ("select from ready join lease on true where lane = :lane::smallint", ["from ready", "join lease"]),
        (
            "update lease set done = done from unnest(:lane::smallint[]) as x where x.lane = lease.lane",
            ["update lease"],
        ),
        ("insert into audit (id) select :id::uuid", ["insert audit"]),
        ("insert into ready (lane, id) select 7, id from ready where lane = :lane::smallint", ["insert ready"]),
        ("insert into ready (lane, id) select lane, id from later where lane = :lane::smallint", []),
        ("insert into audit (lane, id) values (7, :id::uuid)", ["insert audit"]),
        ("insert into audit (lane, id) values (:lane::smallint, :id::uuid)", []),
        ("select from job join line on true", []),
    ],
)
def test_the_reader_finds_what_is_missing(sql: str, found: list[str]) -> None:
    assert sorted(lapses(Statement("made up", sql))) == sorted(found)


def test_the_reader_looks_into_the_functions_that_a_statement_calls() -> None:
    fire, withdraw = load("schedules/fire"), load("schedules/withdraw")

    ledger = {"occurrence", "occurrence_past", "skipped", "schedule", "cursor", "schedule_run", "schedule_failure"}
    assert written(fire) == ledger | {
        "ready",
        "later",
        "held",
        "lease",
        "slot",
        "attempt",
        "audit",
        "dependency",
        "chain_news",
    }
    assert written(withdraw) == {"ready", "later", "occurrence", "occurrence_past", "cursor", "schedule_run"}
    assert written(load("schedules/backfill")) == {"occurrence", "occurrence_past", "ready"}
    assert [touch.table for touch in touches(inside(fire)[1])] == ["cursor", "schedule"]
    assert lapses(Statement("made up", "select finish_run()")) == []
    failures = {"schedule_run", "schedule_failure"}
    assert written(load("runs/submit")) == {"idempotency", "unique_key", "slot", "ready", "later", "held"} | failures


# ── the tables ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_table_is_either_moving_or_shared(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    tables = await connection.fetch(
        "select relname from pg_class"
        " where relnamespace = 'mainspring'::regnamespace and relkind in ('r', 'p') and not relispartition"
    )

    assert {row["relname"] for row in tables} == set(MOVING) | set(SHARED)
    assert not set(MOVING) & set(SHARED)


async def test_every_unique_key_of_a_moving_table_contains_the_lane(
    connection: asyncpg.Connection[asyncpg.Record],
) -> None:
    keys = await connection.fetch(
        """
        select relation.relname as moving, index.indexrelid::regclass::text as key,
               array(select attname::text from pg_attribute where attrelid = index.indexrelid) as columns
        from pg_index as index join pg_class as relation on relation.oid = index.indrelid
        where index.indisunique and relation.relname = any ($1) and relation.relnamespace = 'mainspring'::regnamespace
        """,
        MOVING,
    )

    assert {row["moving"] for row in keys} == set(MOVING) - {"attempt", "log"}, "all but history have a key"
    assert [row["key"] for row in keys if "lane" not in row["columns"]] == []


async def test_the_lane_is_the_same_small_number_everywhere(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    lanes = await connection.fetch(
        "select attrelid::regclass::text as moving, format_type(atttypid, atttypmod) as kind from pg_attribute"
        " where attname = 'lane' and attnotnull and attrelid = any ($1::text[]::regclass[])",
        MOVING,
    )

    assert {row["moving"]: row["kind"] for row in lanes} == dict.fromkeys(MOVING, "smallint")
