"""Limits, order, shares, rates, marks and a graph at once, while workers and PostgreSQL are frozen or killed.

What happened is read from history: from its first claim to its end, a run has its slot. Each check has a control.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg
import pytest

from mainspring import Mainspring
from mainspring.store import buckets, sharing
from mainspring.store.statements import load

from . import sabotage
from .faulty_app import UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME, System
from .test_flows import WIDTH, layers
from .test_losing_the_database import (  # noqa: F401  fixtures
    OUTAGE_LEASE_TIME,
    durable,
    durable_directory,
)

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from mainspring.store.embedded import EmbeddedServer

    from .machinery import Tree

CUSTOMERS = ("ada", "bob", "cleo")
QUEUES = ("default", "marked")
EACH, RATED, MARKED = 6, 30, 20
RATE, BURST, SHARED_SLOTS, HIGH_MARK = 100, 5, 4, 8
BRIEFLY = 0.02

# From its first claim to its end, whoever had it in between, a run has its slot.
SPANS = """
    with run as (
        select over.run_id, job.name as job, over.finished_at as ended,
               convert_from(over.payload, 'UTF8')::jsonb ->> 'customer' as customer,
               (convert_from(over.payload, 'UTF8')::jsonb ->> 'number')::int as number,
               (select min(claimed_at) from attempt where attempt.run_id = over.run_id) as began,
               (select min(ready_at) from attempt where attempt.run_id = over.run_id) as released
        from attempt as over join job on job.id = over.job_id where over.state = 'succeeded')
"""
OVERLAPPING = """
    select count(*) from run as one join run as other
        on one.job = other.job and one.customer = other.customer and one.run_id <> other.run_id
        and one.began <= other.began and other.began < one.ended"""
OUT_OF_ORDER = """
    select count(*) from run as one join run as other
        on one.job = other.job and one.customer = other.customer
        and one.began < other.began and one.number > other.number"""
IN_A_TENTH = """
    select coalesce(max((
        select count(*) from run as other
        where other.job = one.job and other.released >= one.released
          and other.released < one.released + interval '100 ms')), 0)
    from run as one where one.job = 'pause_at_a_rate'"""
AT_ONCE = """
    select coalesce(max((
        select count(*) from run as other
        where other.job = one.job and other.began <= one.began and other.ended > one.began)), 0)
    from run as one where one.job = 'pause_in_shares'"""
TOO_EARLY = """
    select count(*) from unnest($1::uuid[], $2::uuid[]) as wanted (parent, child)
    join run as before on before.run_id = wanted.parent join run as after on after.run_id = wanted.child
    where after.began < before.ended"""


class Work(NamedTuple):
    """What was accepted, and who waits for whom."""

    accepted: list[UUID]
    parents: list[UUID]
    children: list[UUID]
    app: Mainspring | None = None  # where a queue is paused


class Found(NamedTuple):
    """What went wrong, by what history says."""

    overlapping: int
    out_of_order: int
    too_early: int
    is_too_fast: bool
    are_too_many: bool
    left: tuple[int, ...]  # slots, runs at gates, dependencies


NOTHING = Found(0, 0, 0, False, False, (0, 0, 0))


async def submit_all(jobs: Any, first: float = BRIEFLY) -> Work:
    """Something of everything; the first at each gate, and the roots of the graph, take `first`."""
    handles = []
    for number in range(EACH):
        seconds = BRIEFLY if number else first
        for customer in CUSTOMERS:
            handles.append(await jobs.pause_in_turn.submit(customer=customer, seconds=seconds))
            handles.append(await jobs.pause_in_order.submit(customer=customer, number=number, seconds=seconds))
    handles += await jobs.pause_at_a_rate.submit_many([{"seconds": 0.0}] * RATED)
    for customer in CUSTOMERS:
        handles += await jobs.pause_in_shares.submit_many([{"shop": customer, "seconds": BRIEFLY}] * EACH)
    handles += await submit_at_marks(jobs)
    flow = jobs.app.flow("layers")
    pairs = layers(flow, jobs.pause, first)
    submitted = await flow.submit()
    nodes = [node.run_id for node in (await submitted.find()).nodes]
    return Work(
        [handle.id for handle in handles] + nodes,
        [submitted.run(parent).id for parent, _ in pairs],
        [submitted.run(child).id for _, child in pairs],
        jobs.app,
    )


async def submit_at_marks(jobs: Any) -> list[Any]:
    """More than come in line: nobody takes any before the queue is resumed. What is due first fills the line."""
    await jobs.app.queues.pause("marked")
    await jobs.app.queues.set_marks("marked", high=HIGH_MARK)
    return [  # by their keys, they are in all lanes
        await jobs.pause_at_marks.options(delay=delay, key=f"{delay} {number}").submit(BRIEFLY)
        for delay in (0.05, 1.0)
        for number in range(MARKED)
    ]


async def wait_at_marks(system: System) -> bool:
    return await system.count("held", "reason = 'backpressure'") > 0


async def judged(system: System, work: Work) -> Found:
    """Once all is over."""
    if work.app is not None:
        await work.app.queues.resume("marked")
    assert await system.ended(len(work.accepted))
    return Found(
        await system.value(SPANS + OVERLAPPING),
        await system.value(SPANS + OUT_OF_ORDER),
        await system.value(SPANS + TOO_EARLY, work.parents, work.children),
        await system.value(SPANS + IN_A_TENTH) > 0.15 * RATE + BURST,
        await system.value(SPANS + AT_ONCE) > SHARED_SLOTS,
        (await system.count("slot"), await system.count("held"), await system.count("dependency")),
    )


def busiest(system: System, pids: set[int]) -> Tree:
    return next(tree for tree in system.trees if pids & set(tree.children()))


async def who_has_runs(system: System) -> set[int]:
    rows = await system.connection.fetch("select distinct pid from worker join lease on lease.worker_id = worker.id")
    return {row["pid"] for row in rows}


async def who_has_slots(system: System) -> set[int]:
    """Runs of a graph hold none: nobody overtakes those."""
    rows = await system.connection.fetch("""
        select distinct worker.pid from worker join lease on lease.worker_id = worker.id
        join slot on slot.lane = lease.lane and slot.run_id = any (lease.ids)""")
    return {row["pid"] for row in rows}


async def all_are_begun(system: System) -> bool:
    """At each gate one, and all roots of the graph."""
    begun = await system.value("select coalesce(sum(cardinality(ids) - bit_count(done)), 0) from lease")
    return bool(begun == 2 * len(CUSTOMERS) + WIDTH)


@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
@pytest.mark.parametrize("frozen", ["worker", "supervisor", "both"])
async def test_limits_rates_and_graphs_hold_while_somebody_is_frozen_past_its_lease(
    system: System, jobs: Any, frozen: str
) -> None:
    """A worker with its keeper, the supervisor that sends its heartbeats, or both; and they wake up again."""
    for _ in range(2):
        system.start(lease_time=SHORT_LEASE_TIME, queues=QUEUES)
    assert await system.live_workers(2)
    work = await submit_all(jobs, UNTIL_TOLD)
    assert await system.eventually(lambda: all_are_begun(system))
    assert await system.eventually(lambda: wait_at_marks(system))
    victim = busiest(system, await who_has_runs(system))
    children = victim.children()
    freeze(victim, children, frozen, signal.SIGSTOP)
    assert await system.eventually(lambda: system.count("attempt", "outcome = 'crashed'"))
    assert await system.eventually(lambda: all_are_begun(system))
    await system.tell_them_to_go_on()
    assert await system.ended(len(work.accepted) // 2)
    freeze(victim, children, frozen, signal.SIGCONT)

    assert await judged(system, work) == NOTHING
    report = await system.report(work.accepted, must_be_drained=True)
    assert report.violations == [], report


def freeze(victim: Tree, children: list[int], what: str, number: signal.Signals) -> None:
    pids = {"worker": children, "supervisor": [victim.process.pid], "both": [victim.process.pid, *children]}[what]
    for pid in pids:
        os.kill(pid, number)


async def connected(server: EmbeddedServer) -> Any:
    """A connection, once there is a server again: whoever misses it starts it."""
    with contextlib.suppress(OSError, asyncpg.PostgresError):
        return await asyncpg.connect(server.dsn, server_settings={"search_path": "mainspring, public"})


@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
@pytest.mark.timeout(250)
async def test_limits_rates_and_graphs_hold_while_postgresql_is_killed(
    durable: tuple[EmbeddedServer, System],  # noqa: F811
    durable_directory: Path,  # noqa: F811
    jobs: Any,
) -> None:
    """kill -9 of the postmaster, again and again, while runs pass their limits and a graph goes on."""
    server, system = durable
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)  # see test_losing_the_database
    place = {"MAINSPRING_DATABASE_URL": "", "MAINSPRING_DATA_DIR": str(durable_directory / "data")}
    for _ in range(2):
        system.start(environment=place, lease_time=OUTAGE_LEASE_TIME, queues=QUEUES)
    assert await system.live_workers(2)
    jobs.app = Mainspring(data_directory=durable_directory / "data", submitted_by="tester")
    for job in vars(jobs).values():
        if hasattr(job, "handler"):
            job._app = jobs.app
            jobs.app.registry.add(job.handler)
    work = await submit_all(jobs)
    assert await system.eventually(lambda: wait_at_marks(system))
    for share in (1, 2, 3):
        assert await system.ended(len(work.accepted) * share // 5)
        system.connection.terminate()
        await asyncio.to_thread(server.ensure_running)  # it is another one by now, whoever started it
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.to_thread(server.ensure_running)
        system.connection = await system.eventually(lambda: connected(server))

    assert await judged(system, work) == NOTHING
    report = await system.report(work.accepted, must_be_drained=True)
    assert report.violations == [], report
    assert await system.count("worker", "state = 'lost'") == 0


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────

SOMEBODY_BEHIND = "state = 'succeeded' and convert_from(payload, 'UTF8')::jsonb ? 'customer'"


@pytest.mark.parametrize("missing", ["counting", "slots_for_rescued"])
async def test_runs_whose_slots_nobody_counts_or_keeps_would_be_overtaken(
    system: System, jobs: Any, missing: str
) -> None:
    for _ in range(2):
        system.start(sabotage=missing, lease_time=SHORT_LEASE_TIME, queues=QUEUES)
    assert await system.live_workers(2)
    work = await submit_all(jobs, UNTIL_TOLD)
    if missing == "slots_for_rescued":
        assert await system.eventually(lambda: all_are_begun(system))
        busiest(system, await who_has_slots(system)).kill()
    assert await system.eventually(lambda: system.count("attempt", SOMEBODY_BEHIND))
    await system.tell_them_to_go_on()

    assert (await judged(system, work)).overlapping


async def test_runs_of_which_the_last_comes_first_would_be_out_of_order(
    system: System, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = load("limits/next_turns")
    monkeypatch.setattr(statement, "text", sabotage.last_first(statement.text))  # whoever submits releases, too
    system.start(sabotage="order", queues=QUEUES)
    assert await system.live_workers(1)

    assert (await judged(system, await submit_all(jobs))).out_of_order


async def test_runs_that_need_no_tokens_would_start_too_fast(
    system: System, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "filled", no_buckets)  # whoever submits releases, too
    system.start(sabotage="tokens", queues=QUEUES)
    assert await system.live_workers(1)

    assert (await judged(system, await submit_all(jobs))).is_too_fast


async def no_buckets(*_: Any) -> dict[str, Any]:
    return {}


async def test_runs_whose_shares_nobody_counts_would_be_too_many(
    system: System, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_used", no_slots)  # whoever submits releases, too
    system.start(sabotage="shares", queues=QUEUES)
    assert await system.live_workers(1)

    handles = await jobs.pause_in_shares.submit_many([{"shop": "ada", "seconds": UNTIL_TOLD}] * 3 * SHARED_SLOTS)
    begun = "select coalesce(sum(cardinality(ids)), 0) > $1 from lease"
    assert await system.eventually(lambda: system.value(begun, SHARED_SLOTS))
    await system.tell_them_to_go_on()

    assert (await judged(system, Work([handle.id for handle in handles], [], []))).are_too_many


async def no_slots(*_: Any) -> sharing.UsedSlots:
    return sharing.UsedSlots(Counter(), Counter())


async def test_runs_that_wait_for_one_of_several_only_would_start_too_early(system: System, jobs: Any) -> None:
    system.start(sabotage="pending")
    assert await system.live_workers(1)
    flow = jobs.app.flow("two")
    quick, slow = flow.add(jobs.pause, 0.0), flow.add(jobs.pause, UNTIL_TOLD)
    last = flow.add(jobs.pause, 0.0)
    last.after(quick, slow)
    submitted = await flow.submit()
    assert await system.ended(2)
    await system.tell_them_to_go_on()
    ids = [submitted.run(each).id for each in (quick, slow, last)]

    assert (await judged(system, Work(ids, ids[:2], [ids[2]] * 2))).too_early == 1
