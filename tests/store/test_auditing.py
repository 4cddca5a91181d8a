"""Every change of a definition and every act of an operator is audited in its own transaction: both happen, or none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mainspring import Mainspring, MainspringError, RetryPolicy, RunFilter
from mainspring.control.schedule_requests import ScheduleRequest
from mainspring.model.ids import lane_of
from mainspring.schedule.schedule import Schedule
from mainspring.store.statements import all_statements
from mainspring.testing import run_until_idle

from .reading import written
from .routines import inside
from .test_queues import registered
from .test_rescuing import claim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from mainspring.store.connection import Connection


class World(NamedTuple):
    """One of each that something can be done to."""

    app: Mainspring
    url: str
    ready: UUID
    running: UUID
    dead: UUID
    over: UUID
    worker: UUID


@pytest.fixture
async def world(app: Mainspring, url: str, connection: Connection) -> World:
    @app.job(retry=RetryPolicy(max_attempts=1))
    async def sell() -> None:
        raise ValueError("sold out")

    @app.job(queue="mail")
    async def post() -> None: ...

    @app.job(after="sell")
    async def follow() -> None: ...

    dead, over = await sell.submit(), await post.submit()
    await run_until_idle(app)
    running, worker = await sell.submit(), await registered(connection, slots=1)
    await claim(connection, lane_of(running.id), await connection.fetchval("select line_id from ready"), worker)
    await app.queues.pause("default")
    await app.limits.set(100, queue="default")
    await app.breakers.set("post")
    await app.breakers.set("sell")
    await app.breakers.open("sell")
    await app.backlogs.set(100, queue="default")
    return World(app, url, (await sell.submit()).id, running.id, dead.id, over.id, worker)


async def define(world: World) -> None:
    async with Mainspring(world.url, submitted_by="tester") as deployed:

        @deployed.job
        async def pack() -> None: ...

        await pack.submit()


async def define_anew(world: World) -> None:
    async with Mainspring(world.url, submitted_by="tester") as deployed:

        @deployed.job(retry=RetryPolicy(max_attempts=7))
        async def sell() -> None: ...

        await sell.submit()


async def define_following(world: World) -> None:
    async with Mainspring(world.url, submitted_by="tester") as deployed:

        @deployed.job(after="sell")
        async def ship() -> None: ...

        await ship.submit()


# By the statement that writes both: what the audit calls it, and how it is done.
ACTS: dict[str, tuple[str, Callable[[World], Awaitable[Any]]]] = {
    "jobs/register": ("job.create", define),
    "jobs/add_version": ("job.change", define_anew),
    "runs/change": ("run.change", lambda world: world.app.runs.change(world.ready, priority=1)),
    "runs/cancel_waiting": ("run.cancel", lambda world: world.app.runs.cancel(world.ready)),
    "leases/request_cancel": ("run.cancel", lambda world: world.app.runs.cancel(world.running)),
    "runs/requeue": ("run.requeue", lambda world: world.app.runs.requeue(world.dead)),
    "runs/purge": ("run.purge", lambda world: world.app.runs.purge(world.dead)),
    "runs/rerun": ("run.rerun", lambda world: world.app.runs.rerun(world.over)),
    "operations/start": ("operation.start", lambda world: world.app.operations.start("cancel", RunFilter())),
    "queues/pause": ("queue.pause", lambda world: world.app.queues.pause("mail")),
    "queues/set_marks": ("queue.marks", lambda world: world.app.queues.set_marks("mail", high=9)),
    "queues/resume": ("queue.resume", lambda world: world.app.queues.resume("default")),
    "limits/put": ("limit.set", lambda world: world.app.limits.set(7, queue="mail")),
    "limits/remove": ("limit.remove", lambda world: world.app.limits.remove(queue="default")),
    "chains/put": ("chain.declare", define_following),
    "chains/pause": ("chain.pause", lambda world: world.app.chains.pause("sell", "follow")),
    "chains/remove": ("chain.remove", lambda world: world.app.chains.remove("sell", "follow")),
    "breakers/put": ("breaker.set", lambda world: world.app.breakers.set("sell", 9)),
    "breakers/open": ("breaker.open", lambda world: world.app.breakers.open("post")),
    "breakers/close": ("breaker.close", lambda world: world.app.breakers.close("sell")),
    "breakers/remove": ("breaker.remove", lambda world: world.app.breakers.remove("post")),
    "backlog/put": ("backlog.set", lambda world: world.app.backlogs.set(7, queue="mail")),
    "backlog/remove": ("backlog.remove", lambda world: world.app.backlogs.remove(queue="default")),
    "tenants/create": ("tenant.create", lambda world: world.app.tenants.create("acme", weight=2)),
    "tenants/set_weight": ("tenant.weight", lambda world: world.app.tenants.set_weight("default", 7)),
    "workers/request_drain": ("worker.drain", lambda world: world.app.workers.drain(world.worker)),
}
# Restoring takes many transactions, between one row and another.
BEGIN_AND_END = {"restoring/begin": "restore.start", "restoring/end": "restore.end"}
# See the acts on schedules below: one statement records each of them, and one many at once, beside what they do.
OF_SCHEDULES = {
    "schedules/audit": None,
    "schedules/audit_many": None,
    "schedules/set_aside": "schedule.pause",
    "schedules/pause_failing": "schedule.pause",
    "schedules/fire": "run.cancel",  # of earlier runs, if the schedule says so
}
# What happens to the runs of a flow is audited with each of them, and the act on all of them once.
OF_FLOWS = {"flows/audit": None, "flows/replace": "flow.retry"}
# What is not submitted after a run is recorded in the transaction that would have submitted it.
OF_CHAINS = {"chains/trigger": "chain.refuse"}
# What gives way in a full backlog is cancelled by it.
OF_BACKLOGS = {"backlog/drop": "run.cancel"}
ACTION = re.compile(r"'([a-z]+\.[a-z]+)'")

REFUSE = """
create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no audit today'; end $$;
create trigger refuse before insert on audit for each row execute function refuse()"""
ALLOW = "drop trigger refuse on audit; drop function refuse"
TABLES = (
    "ready",
    "later",
    "held",
    "dead",
    "lease",
    "attempt",
    "job",
    "tenant",
    "job_version",
    "queue",
    "operation",
    "worker",
    "limit_rule",
    "chain",
    "breaker",
    "breaker_opening",
    "backlog_cap",
)


async def contents(connection: Connection) -> list[str]:
    """Whatever an act can change."""
    rows = [await connection.fetch(f"select to_jsonb({table}.*) from {table}") for table in TABLES]  # noqa: S608
    return sorted(row[0] for found in rows for row in found)


async def audited(connection: Connection, action: str) -> int:
    query = "select count(*) from audit where action = $1 and actor = 'tester'"
    return int(await connection.fetchval(query, action))


def test_every_act_is_known() -> None:
    statements = [each for each in all_statements() if "audit" in written(each, "insert")]

    expected = {name: action for name, (action, _) in ACTS.items()} | BEGIN_AND_END | OF_SCHEDULES | OF_FLOWS
    expected |= OF_CHAINS | OF_BACKLOGS
    expected["jobs/register_with_number"] = "job.create"  # on a node of a cluster that cannot ask the sequence
    texts = {each.name: " ".join(part.text for part in (each, *inside(each))) for each in statements}
    assert {name: next(iter(ACTION.findall(text)), None) for name, text in texts.items()} == expected


@pytest.mark.invariant(11)
@pytest.mark.parametrize("name", ACTS)
async def test_an_act_and_its_audit_row_happen_together_or_not_at_all(
    world: World, connection: Connection, name: str
) -> None:
    (action, act), before = ACTS[name], await contents(connection)
    known = await audited(connection, action)

    await connection.execute(REFUSE)
    with pytest.raises(MainspringError, match="no audit today"):
        await act(world)
    assert await contents(connection) == before
    await connection.execute(ALLOW)
    await act(world)

    assert await contents(connection) != before
    assert await audited(connection, action) == known + 1


# ── schedules ───────────────────────────────────────────────────────────────────────────────────────────────────

SCHEDULES: dict[str, Callable[[Mainspring], Awaitable[object]]] = {
    "create": lambda app: app.schedules.create("new", "greet", "every hour", {"name": "Ada"}),
    "create_many": lambda app: app.schedules.create_many(
        [ScheduleRequest(name="new", job="greet", schedule=Schedule.parse("every hour"), payload=b'{"name": "Ada"}')]
    ),
    "put_many": lambda app: app.schedules.put_many(
        [ScheduleRequest(name="new", job="greet", schedule=Schedule.parse("every hour"), payload=b'{"name": "Ada"}')]
    ),
    "update": lambda app: app.schedules.update("old", tags=["a"]),
    "replace": lambda app: app.schedules.put("old", "greet", "every day at 09:00", {"name": "Ada"}),
    "pause": lambda app: app.schedules.pause("old"),
    "resume": lambda app: app.schedules.resume("old"),
    "delete": lambda app: app.schedules.delete("old"),
}
OF_A_SCHEDULE = ("schedule", "schedule_version", "cursor", "occurrence", "skipped")


async def schedule_contents(connection: Connection) -> list[str]:
    rows = [await connection.fetch(f"select to_jsonb({table}.*) from {table}") for table in OF_A_SCHEDULE]  # noqa: S608
    return sorted(row[0] for found in rows for row in found)


@pytest.mark.invariant(11)
@pytest.mark.parametrize("action", SCHEDULES)
async def test_an_act_on_a_schedule_and_its_audit_row_happen_together_or_not_at_all(
    app: Mainspring, connection: Connection, action: str
) -> None:
    @app.job
    async def greet(name: str) -> None: ...

    await greet.scheduled("old", "every hour").create("Ada")
    if action == "resume":
        await app.schedules.pause("old")
    before, known = await schedule_contents(connection), await audited(connection, f"schedule.{action}")

    await connection.execute(REFUSE)
    with pytest.raises(MainspringError, match="no audit today"):
        await SCHEDULES[action](app)
    assert await schedule_contents(connection) == before
    await connection.execute(ALLOW)
    await SCHEDULES[action](app)

    assert await schedule_contents(connection) != before
    assert await audited(connection, f"schedule.{action}") == known + 1
