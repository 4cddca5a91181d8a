"""What people ask of a Citus cluster: lists, operations, queues, workers, reports; and the duties of its keeper."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from mainspring import Context, Limit, Mainspring, RetryPolicy, RunFilter, State
from mainspring.control.doctor import examine
from mainspring.control.findings import Finding, Level
from mainspring.control.overview import overview
from mainspring.keeper.expirer import Expirer
from mainspring.keeper.partitioner import Partitioner
from mainspring.keeper.promoter import Promoter
from mainspring.keeper.pruner import Pruner
from mainspring.keeper.rescuer import Rescuer
from mainspring.keeper.sampler import Sampler
from mainspring.keeper.sweeper import Sweeper
from mainspring.store import health, queues, workers
from mainspring.store.migrate import LANES_ON_CITUS
from mainspring.testing import run_until_idle

from .citus import on_citus

if TYPE_CHECKING:
    from mainspring.store.connection import Connection


pytestmark = on_citus

ONCE = RetryPolicy(max_attempts=1)


async def test_runs_of_all_lanes_are_listed_and_acted_on(citus_app: Mainspring) -> None:
    @citus_app.job
    async def sell(n: int) -> int:
        return n

    @citus_app.job(retry=ONCE)
    async def pay(n: int) -> None:
        raise ValueError(f"no {n}")

    sold = await sell.submit_many([{"n": n} for n in range(30)])
    paid = await pay.submit_many([{"n": n} for n in range(30)])
    await run_until_idle(citus_app)
    planned = await sell.options(delay=3_600).submit_many([{"n": n} for n in range(30)])

    first = await citus_app.runs.list(limit=50)
    second = await citus_app.runs.list(limit=50, cursor=first.cursor)
    assert {run.id for run in first.runs + second.runs} == {handle.id for handle in sold + paid + planned}
    assert {run.id for run in (await citus_app.runs.list(state="dead", job="pay")).runs} == {run.id for run in paid}
    assert [run.id for run in (await citus_app.runs.list(error="no 7")).runs] == [paid[7].id]

    cancelled = await finished(citus_app, "cancel", RunFilter(states=(State.SCHEDULED,)))
    assert (cancelled, await citus_app.runs.count(RunFilter(states=(State.CANCELLED,)))) == (30, (30, True))
    assert await finished(citus_app, "requeue", RunFilter(jobs=("pay",))) == 30
    [summary] = [each for each in await citus_app.jobs.list() if each.name == "pay"]
    assert summary.counts[State.READY] == 30


async def test_limits_hold_over_all_nodes(citus_app: Mainspring, coordinator: Connection) -> None:
    """By key, in all together, for runs whose idempotency keys spread them over all lanes, and in order."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    posted: list[int] = []

    @citus_app.job(limit=[Limit(1, key="customer"), Limit(3)])
    async def bill(customer: str) -> None:
        for name in (customer, "all"):
            running[name] += 1
            most[name] = max(most[name], running[name])
        await asyncio.sleep(0)
        running.subtract((customer, "all"))

    @citus_app.job(limit=Limit(1, order="strict"))
    async def post(number: int) -> None:
        posted.append(number)

    await bill.submit_many([{"customer": f"c{n % 5}"} for n in range(30)])
    for n in range(10):
        await bill.options(key=f"order-{n}").submit(customer="c1")
        await post.submit(number=n)
    await run_until_idle(citus_app)

    assert (most.pop("all") <= 3, set(most.values()), posted) == (True, {1}, list(range(10)))
    assert await coordinator.fetchval("select count(*) from attempt where state = 'succeeded'") == 50
    assert await coordinator.fetchval("select (select count(*) from held) + (select count(*) from slot)") == 0


async def test_runs_that_a_row_of_history_stands_for_are_found_on_their_nodes(
    citus_app: Mainspring, coordinator: Connection
) -> None:
    @citus_app.job
    async def sell(n: int) -> None: ...

    sold = await sell.submit_many([{"n": n} for n in range(200)])
    await run_until_idle(citus_app)
    assert await coordinator.fetchval("select count(*) from attempt where is_covered") > 0

    assert {run.id async for run in citus_app.runs.each(RunFilter(jobs=("sell",)))} == {run.id for run in sold}
    now = await coordinator.fetchval("select clock_now()")
    window = (LANES_ON_CITUS, now - timedelta(hours=1), now + timedelta(hours=1))
    tenant = citus_app.actor.tenant
    assert [row["count"] for row in await health.finished_between(coordinator, *window, tenant_id=tenant)] == [200]
    latest = await health.latest_attempts(coordinator, *window, 50, tenant_id=tenant)
    assert len({row["run_id"] for row in latest} & {run.id for run in sold}) == 50
    assert len(await health.lateness(coordinator, 3_600, 1_000, tenant_id=tenant)) == 200


async def finished(app: Mainspring, kind: str, wanted: RunFilter) -> int:
    operation = await app.operations.start(kind, wanted)
    steps = [step async for step in app.operations.work(operation.id, batch=20)]
    assert steps[-1].is_over
    return steps[-1].done


async def test_queues_are_measured_paused_and_resumed(citus_app: Mainspring, coordinator: Connection) -> None:
    @citus_app.job(queue="mail", retry=ONCE)
    async def send(n: int) -> None:
        if n == 0:
            raise ValueError("no address")

    await send.submit_many([{"n": n} for n in range(20)])
    assert await citus_app.queues.pause("mail", reason="the server is down")
    assert not await citus_app.queues.pause("mail")
    assert await run_until_idle(citus_app) == {}
    await coordinator.execute("delete from load_sample")
    assert await queues.take_samples(coordinator)

    [mail] = [queue for queue in await citus_app.queues.list() if queue.name == "mail"]
    assert (mail.depth, mail.pause_reason) == (20, "the server is down")
    assert mail.oldest_seconds is not None

    assert await citus_app.queues.resume("mail")
    assert await run_until_idle(citus_app) == {"succeeded": 19, "failed": 1}
    seen = await overview(coordinator, citus_app.actor, LANES_ON_CITUS)
    assert (seen.counts["ready"], [failure.job for failure in seen.failures]) == (0, ["send"])
    assert seen.lateness_p50 is not None


async def test_a_worker_is_asked_to_drain(citus_app: Mainspring, coordinator: Connection) -> None:
    worker_id = uuid4()
    await workers.register(
        coordinator,
        worker_id=worker_id,
        host="here",
        pid=1,
        queues=["default"],
        handlers=["nothing"],
        slots=1,
        lease_seconds=30.0,
        version="test",
    )

    assert await workers.send_heartbeats(coordinator, [worker_id]) == {worker_id: False}
    await citus_app.workers.drain(worker_id, reason="a new disk")
    asked = await coordinator.fetchval("select drain_requested_at from worker where id = $1", worker_id)
    await citus_app.workers.drain(worker_id)

    assert await workers.send_heartbeats(coordinator, [worker_id]) == {worker_id: True}
    assert await coordinator.fetchval("select drain_requested_at from worker where id = $1", worker_id) == asked
    assert await workers.stop_if_live(coordinator, worker_id)


async def test_attempts_report_and_leave_word_for_the_next_one(citus_app: Mainspring, coordinator: Connection) -> None:
    found = []

    @citus_app.job(retry=RetryPolicy(max_attempts=2, first_delay=RetryPolicy().first_delay * 0))
    async def crunch(context: Context) -> None:
        context.progress(0.5, "half")
        context.log(f"try {context.attempt}")
        found.append(context.checkpointed)
        await context.checkpoint({"step": 1})
        if context.attempt == 1:
            raise ValueError("not yet")

    handle = await crunch.submit()
    assert await run_until_idle(citus_app) == {"failed": 1, "succeeded": 1}

    assert found == [None, {"step": 1}]
    assert [line.text for line in await handle.logs()] == ["try 1", "try 2"]
    assert await coordinator.fetchval("select count(*) from checkpoint") == 0


async def test_doctor_names_nodes_that_compile_queries(citus_app: Mainspring, coordinator: Connection) -> None:
    migrated = await finding(coordinator, citus_app, "jit")
    role, name = await coordinator.fetchrow("select quote_ident(current_user), quote_ident(current_database())")
    await coordinator.execute(f"alter role {role} in database {name} reset jit")
    warned = await finding(coordinator, citus_app, "jit")
    await coordinator.execute(warned.remedy.partition(": ")[2])
    remedied = await finding(coordinator, citus_app, "jit")

    assert [each.level for each in (migrated, warned, remedied)] == [Level.OK, Level.WARNING, Level.OK]


async def finding(connection: Connection, app: Mainspring, check: str) -> Finding:
    [found] = [each for each in await examine(connection, app.clock) if each.check == check]
    return found


async def test_a_keeper_does_all_its_duties(citus_app: Mainspring, coordinator: Connection) -> None:
    @citus_app.job
    async def nothing() -> None: ...

    due = await nothing.options(delay=3_600).submit()
    expiring = await nothing.options(start_within=3_600).submit()
    await coordinator.execute("update later set due_at = clock_now()")
    await coordinator.execute("update ready set expires_at = clock_now()")
    clock = citus_app.clock

    for duty in (
        Partitioner(),
        Promoter(lanes=LANES_ON_CITUS, clock=clock),
        Rescuer(lanes=LANES_ON_CITUS, clock=clock),
        Expirer(lanes=LANES_ON_CITUS),
        Sampler(),
        Sweeper(lanes=LANES_ON_CITUS),
        Pruner(lanes=LANES_ON_CITUS),
    ):
        assert await duty.step(coordinator) >= 0
    assert [(await handle.find()).state for handle in (due, expiring)] == [State.READY, State.EXPIRED]
