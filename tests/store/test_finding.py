"""Finding one run: wherever it is, with all that happened to it, and without reading what belongs to others."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring
from mainspring.errors import InvalidInput, RunNotFound
from mainspring.model.lifecycle import ENDS, PLACES, Outcome, State
from mainspring.model.policy import RetryPolicy
from mainspring.store import submissions
from mainspring.store.statements import load
from mainspring.testing import FrozenClock, run_until_idle

from ..lifecycle.moves import state_at
from ..lifecycle.verbs import VERBS, WAYS, Stage
from .test_cancelling import unknown_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database


@pytest.fixture
async def stage(database: Database) -> AsyncIterator[Stage]:
    """Puts runs into any state, in the database of the test's application."""
    stage = await Stage.opens(database)
    yield stage
    await stage.closes()


# ── where it is and what it carries ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spot", WAYS)
async def test_a_run_is_found_wherever_it_is_with_what_it_carries(app: Mainspring, stage: Stage, spot: str) -> None:
    subject, state = await stage.set_up(spot), state_at(spot)

    run = await app.runs.find(subject.run_id)

    assert (run.id, run.state, run.job, run.job_version, run.queue) == (subject.run_id, state, "on_stage", 1, "default")
    assert (run.payload, run.tags, run.priority) == ({"a": 1}, ["one", "two"], 4)
    assert (run.submitted_by, run.idempotency_key) == ("someone", "key")
    assert run.fence == len(subject.claims)


@pytest.mark.parametrize("state", PLACES)
async def test_a_run_that_lives_shows_what_it_waits_for_or_who_has_it(
    app: Mainspring, stage: Stage, state: State
) -> None:
    subject = await stage.set_up(state)

    run = await app.runs.find(subject.run_id)

    assert run.held_for == ("no-handler" if state is State.HELD else None)
    assert run.worker_id == (subject.worker_id if state is State.RUNNING else None)
    assert run.expires_at is not None
    assert not run.is_cancelling


@pytest.mark.parametrize("state", sorted(ENDS & set(WAYS)))
async def test_a_run_that_ended_is_read_from_history(app: Mainspring, stage: Stage, state: State) -> None:
    run = await app.runs.find((await stage.set_up(state)).run_id)
    assert run.attempts[-1].state is state
    assert run.transitions[-1].what in (state, "run.cancel")


async def test_a_run_is_found_by_its_id_as_text(app: Mainspring, stage: Stage) -> None:
    run_id = (await stage.set_up(State.READY)).run_id
    assert (await app.runs.find(str(run_id))).id == run_id


@pytest.mark.parametrize("lane", [0, 7, 8, 4095])
async def test_a_run_that_never_was_is_not_found(app: Mainspring, lane: int) -> None:
    run_id = unknown_id(lane)
    with pytest.raises(RunNotFound, match=str(run_id)):
        await app.runs.find(run_id)


async def test_what_is_not_a_run_id_is_refused(app: Mainspring) -> None:
    with pytest.raises(InvalidInput, match="'7' is not a run id"):
        await app.runs.find("7")


# ── what happened to it ─────────────────────────────────────────────────────────────────────────────────────────


async def test_attempts_and_transitions_tell_the_whole_story(frozen_app: Mainspring, clock: FrozenClock) -> None:
    failures = ["not yet", "nearly"]

    @frozen_app.job(retry=RetryPolicy(first_delay=timedelta(minutes=1)))
    async def stubborn() -> str:
        if failures:
            raise ValueError(failures.pop(0))
        return "done"

    begun = clock.at
    handle = await stubborn.options(delay=timedelta(hours=1)).submit()
    await run_until_idle(frozen_app, travel=True)

    run = await handle.find()
    assert [(each.number, each.fence, each.outcome, each.state) for each in run.attempts] == [
        (1, 1, Outcome.FAILED, State.SCHEDULED),
        (2, 2, Outcome.FAILED, State.SCHEDULED),
        (3, 3, Outcome.SUCCEEDED, State.SUCCEEDED),
    ]
    assert [(each.error or {}).get("message") for each in run.attempts] == ["not yet", "nearly", None]
    assert run.attempts[-1].result == "done"
    hours_later = begun + timedelta(hours=1)
    assert [each.ready_at for each in run.attempts] == [hours_later + timedelta(minutes=each) for each in (0, 1, 3)]
    assert (run.state, run.attempts_spent, run.fence) == (State.SUCCEEDED, 3, 3)
    once = ["ready", "running"]
    assert [each.what for each in run.transitions] == [
        "submitted",
        *(*once, "scheduled") * 2,
        *(*once, "succeeded"),
    ]
    assert run.transitions[3].detail == "attempt 1 failed: not yet"


async def test_what_people_did_is_part_of_the_story(app: Mainspring, stage: Stage) -> None:
    run_id = (await stage.set_up(State.READY)).run_id
    await app.runs.change(run_id, priority=1)
    await app.runs.cancel(run_id, reason="no longer wanted")

    story = [(each.what, each.detail) for each in (await app.runs.find(run_id)).transitions]

    assert story[-3:] == [
        ("run.change", "by tester"),
        ("run.cancel", "by tester: no longer wanted"),
        ("cancelled", "cancelled: no longer wanted"),
    ]


async def test_a_crash_leaves_its_trace(app: Mainspring, stage: Stage) -> None:
    subject = await stage.set_up(State.RUNNING)
    await VERBS["rescue"](stage.first, subject, State.RUNNING)

    run = await app.runs.find(subject.run_id)

    last = run.attempts[-1]
    assert (run.state, last.outcome, last.state, last.worker_id) == (
        State.READY,
        Outcome.CRASHED,
        State.READY,
        subject.worker_id,
    )
    assert (last.error or {})["code"] == "worker-lost"


@pytest.mark.parametrize("hours", [-12, 12])
async def test_history_is_found_though_the_submitters_clock_was_half_a_day_off(
    frozen_app: Mainspring, clock: FrozenClock, url: str, hours: int
) -> None:
    """A run id is dated by the host that made it, and history is searched from that day on."""
    hello_of(frozen_app)
    async with Mainspring(url, clock=FrozenClock(clock.at + timedelta(hours=hours))) as elsewhere:
        handle = await hello_of(elsewhere).submit()
    await run_until_idle(frozen_app)

    assert (await frozen_app.runs.find(handle.id)).state is State.SUCCEEDED


def hello_of(app: Mainspring) -> Job[[], str]:
    @app.job
    async def hello() -> str:
        return "hello"

    return hello


# ── what it costs ───────────────────────────────────────────────────────────────────────────────────────────────

LANE = 3
PAGE = 8192
PAYLOAD = os.urandom(256 * 1024)  # leases are compressed: this one cannot be
LEASES, RUNS_PER_LEASE, READY = 50, 20, 200_000
ONE_LEASE = RUNS_PER_LEASE * len(PAYLOAD) // PAGE  # pages that the runs of one lease fill

_MANY_READY = """
insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload)
select $1::int, gen_random_uuid(), 1, 1, 1, 1, number % 10, '{}' from generate_series(1, $2::int) as number
"""
_MANY_RUNNING = """
insert into lease (lane, id, worker_id, runs, ids, done, cancel)
select $1::int, gen_random_uuid(), gen_random_uuid(),
       array_agg(run_of(id, 1, 1, 1, 1, 5::smallint, 0::smallint, 1, 0::smallint, 0, now(), null, 0::smallint,
                        $3::bytea, null, null, null, null, now(), now())),
       array_agg(id), repeat('0', count(*)::int)::varbit, repeat('0', count(*)::int)::varbit
from unnest($2::uuid[]) with ordinality as run (id, position) group by position % $4::int
"""


@pytest.fixture
async def crowded(database: Database) -> AsyncIterator[tuple[Connection, UUID, UUID]]:
    """Many ready runs, many running ones with large payloads, all in one lane; one of each to be looked for."""
    running = submissions.new_run_ids(LEASES * RUNS_PER_LEASE, LANE, datetime.now(UTC))
    async with database.acquire() as connection:
        await connection.execute(_MANY_READY, LANE, READY)
        await connection.execute(_MANY_RUNNING, LANE, running, PAYLOAD, LEASES)
        waiting = await connection.fetchval("select id from ready offset 100000 limit 1")
        yield connection, running[500], waiting


async def pages_touched(connection: Connection, name: str, **values: Any) -> int:
    """How many pages a statement reads, writes or finds in memory; nothing of what it does is kept."""
    statement = load(name)
    frame = connection.transaction()
    await frame.start()
    plan = await connection.fetchval(
        f"explain (analyze, buffers, format json) {statement.text}", *statement.arguments(values)
    )
    await frame.rollback()
    top = json.loads(plan)[0]["Plan"]
    return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])


async def test_a_run_is_found_in_a_crowd_without_reading_the_crowd(crowded: tuple[Connection, UUID, UUID]) -> None:
    connection, running, waiting = crowded
    await expect_few_pages(connection, running, waiting)
    await connection.execute("analyze ready; analyze lease")
    await expect_few_pages(connection, running, waiting)


async def expect_few_pages(connection: Connection, running: UUID, waiting: UUID) -> None:
    """The runs of its own lease for one that runs, since they lie together; next to nothing for all else."""
    place, tenant = {"lane": LANE, "run": running}, {"tenant": 1}
    by = tenant | {"actor": "tester", "reason": "", "detail": "{}"}
    one_lease = {
        "find it": await pages_touched(connection, "runs/find", **place, **tenant),
        "ask it to stop": await pages_touched(connection, "leases/request_cancel", **place, **by),
        "find its state": await pages_touched(
            connection, "lists/whereabouts", lane=LANE, runs=[running], since=datetime.now(UTC), **tenant
        ),
    }
    assert min(one_lease.values()) >= ONE_LEASE, one_lease
    assert max(one_lease.values()) <= 2 * ONE_LEASE, one_lease
    # The first time, the functions that it calls are read from the catalog.
    await pages_touched(connection, "runs/cancel_waiting", lane=LANE, runs=[waiting], **by)
    few = {
        "find a waiting run": await pages_touched(connection, "runs/find", lane=LANE, run=waiting, **tenant),
        "find nothing": await pages_touched(connection, "runs/find", lane=LANE, run=unknown_id(LANE), **tenant),
        "ask whether it exists": await pages_touched(connection, "runs/exists", **place, since=datetime.now(UTC)),
        "end it where it waits": await pages_touched(
            connection, "runs/cancel_waiting", lane=LANE, runs=[waiting], **by
        ),
    }
    assert max(few.values()) < 200, few
