"""Acts on many runs: chosen by a filter, worked off in batches, each run once, whoever else is at work."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.checker import check
from tests.registering import registered_worker
from tests.waiting import until

from mainspring import Mainspring, RetryPolicy, RunFilter
from mainspring.control import lists, looking
from mainspring.errors import FilterTooWide, InvalidInput, OperationNotFound, QueueNotFound, RunNotEnded
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.filter import run_filter
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.model.operation import OperationKind
from mainspring.store import jobs, leases, operations, runs
from mainspring.testing import run_until_idle

from .test_cancelling import audit_of

if TYPE_CHECKING:
    from mainspring.app.job import Job
    from mainspring.model.operation import Operation
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database


MANY = 23
BATCH = 5
WAITERS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'"


class Shop:
    """Two jobs, one of which never works."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app

        @app.job
        async def sell(n: int = 0) -> int:
            return n

        @app.job(retry=RetryPolicy(max_attempts=1, first_delay=timedelta(0)), queue="bank")
        async def pay(n: int = 0) -> None:
            raise ValueError(f"no {n}")

        self.sell: Job[Any, int] = sell
        self.pay: Job[Any, None] = pay

    async def waiting(self, count: int = MANY) -> list[UUID]:
        return [handle.id for handle in await self.sell.submit_many([{"n": n} for n in range(count)])]

    async def dead(self, count: int = MANY) -> list[UUID]:
        ids = [handle.id for handle in await self.pay.submit_many([{"n": n} for n in range(count)])]
        await run_until_idle(self.app)
        return ids

    async def do(self, kind: str, wanted: RunFilter | None = None, **options: Any) -> Operation:
        """Start an operation and work it off, in small batches."""
        operation = await self.app.operations.start(kind, wanted or RunFilter(), **options)
        return await self.finish(operation.id)

    async def finish(self, operation_id: UUID) -> Operation:
        steps = [step async for step in self.app.operations.work(operation_id, batch=BATCH)]
        assert [step.done + step.skipped for step in steps] == sorted(step.done + step.skipped for step in steps)
        return steps[-1]

    async def states(self, ids: list[UUID]) -> set[State]:
        return {(await self.app.runs.find(run_id)).state for run_id in ids}


@pytest.fixture
def shop(app: Mainspring) -> Shop:
    return Shop(app)


# ── what can be done ────────────────────────────────────────────────────────────────────────────────────────────


async def test_waiting_runs_are_cancelled_wherever_they_wait(shop: Shop, connection: Connection) -> None:
    others = await shop.dead(2)
    ids = [*await shop.waiting(), (await shop.sell.options(delay=60).submit()).id]

    operation = await shop.do("cancel", run_filter(job="sell"), reason="closed")

    assert (operation.done, operation.skipped, operation.expected, operation.is_over) == (24, 0, 24, True)
    assert await shop.states(ids) == {State.CANCELLED}
    assert await shop.states(others) == {State.DEAD}
    assert await audit_of(connection, ids[0]) == [
        ("tester", "run.cancel", {"reason": "closed", "operation": str(operation.id)})
    ]
    [(actor, action, detail)] = await audit_of(connection, operation.id)
    assert (actor, action, detail["kind"], detail["filter"]["jobs"]) == (
        "tester",
        "operation.start",
        "cancel",
        ["sell"],
    )
    report = await check(connection, [*ids, *others])
    assert report.violations == [], report


async def test_running_runs_are_asked_to_stop(shop: Shop, connection: Connection) -> None:
    ids = await shop.waiting()
    for lane in range(8):
        await claim(connection, lane)

    operation = await shop.do("cancel")

    assert operation.done == MANY
    assert all([(await shop.app.runs.find(run_id)).is_cancelling for run_id in ids])


async def claim(connection: Any, lane: int) -> None:
    await leases.claim(
        connection,
        lane=lane,
        line=(await jobs.lines_of(connection, tenant_id=DEFAULT_TENANT))["default"],
        priorities=range(10),
        fronts=[0] * 10,
        count=100,
        lease_id=uuid4(),
        worker_id=await registered_worker(connection),
    )


async def test_waiting_runs_get_another_priority_and_queue(shop: Shop, connection: Connection) -> None:
    await shop.dead(1)
    ids = await shop.waiting()

    operation = await shop.do("change", run_filter(queue="default"), priority=1, queue="bank", reason="urgent")

    assert (operation.done, operation.change) == (MANY, {"priority": 1, "queue": "bank"})
    assert {(run.priority, run.queue) for run in [await shop.app.runs.find(run_id) for run_id in ids]} == {(1, "bank")}
    detail = {"reason": "urgent", "operation": str(operation.id), "changed": ["priority", "queue"]}
    assert await audit_of(connection, ids[-1]) == [("tester", "run.change", detail)]
    report = await check(connection, ids)
    assert report.violations == [], report


async def test_dead_letters_are_requeued_or_purged_by_what_killed_them(shop: Shop) -> None:
    ids = await shop.dead()

    purged = await shop.do("purge", run_filter(error="no 1"))  # 1 and 10 to 19
    requeued = await shop.do("requeue", max_age=3600)

    assert (purged.done, requeued.done) == (11, 12)
    assert await shop.states([ids[1], *ids[10:20]]) == {State.CANCELLED}
    run = await shop.app.runs.find(ids[2])
    assert (run.state, run.expires_at is not None) == (State.READY, True)


async def test_what_failed_again_is_not_treated_again(shop: Shop) -> None:
    await shop.dead(12)
    operation = await shop.app.operations.start("requeue", RunFilter())

    async for _ in shop.app.operations.work(operation.id, batch=4):
        await run_until_idle(shop.app)  # they die again at once

    end = await shop.app.operations.find(operation.id)
    assert (end.done, end.skipped) == (12, 0)


async def test_retrying_requeues_the_dead_and_runs_again_what_ended(shop: Shop, connection: Connection) -> None:
    sold = await shop.waiting(6)
    dead = await shop.dead(4)
    await run_until_idle(shop.app)

    only_dead = await shop.do("rerun")
    assert only_dead.done == 4, "what succeeded is not run again unless it is asked for"
    again = await shop.do("rerun", run_filter(state="succeeded"), reason="the till was broken")

    assert again.done == 6
    assert await shop.states(dead) == {State.READY}
    new = [run async for run in shop.app.runs.each(run_filter(state="ready", job="sell"))]
    assert {(await shop.app.runs.find(run.id)).rerun_of for run in new} == set(sold)
    assert {(await shop.app.runs.find(run.id)).payload["n"] for run in new} == set(range(6))
    [(actor, action, detail)] = await audit_of(connection, sold[0])
    assert (actor, action, detail["reason"]) == ("tester", "run.rerun", "the till was broken")
    assert UUID(detail["rerun"]) in {run.id for run in new}


async def test_one_run_is_run_again_whatever_its_end_was(shop: Shop) -> None:
    [dead] = await shop.dead(1)
    [sold] = await shop.waiting(1)
    await run_until_idle(shop.app)

    assert (await shop.app.runs.rerun(dead)).id == dead
    rerun = await shop.app.runs.rerun(sold, arguments={"n": 7})

    assert rerun.id != sold
    await run_until_idle(shop.app)
    assert await rerun.result() == 7
    assert (await rerun.find()).rerun_of == sold
    [waiting] = await shop.waiting(1)
    with pytest.raises(RunNotEnded, match="is ready; it is not over"):
        await shop.app.runs.rerun(waiting)


async def test_other_arguments_are_read_as_they_were_written(shop: Shop, connection: Connection) -> None:
    [sold] = await shop.waiting(1)
    await run_until_idle(shop.app)
    await connection.execute("update attempt set codec = 9")  # as another program wrote them

    rerun = await shop.app.runs.rerun(sold, arguments={"n": 3})

    assert (await rerun.find()).payload == {"n": 3}


# ── who moved on, and who works at the same time ────────────────────────────────────────────────────────────────


async def test_runs_that_started_meanwhile_are_reported_as_skipped(
    shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    [lane] = {lane_of(run_id) for run_id in await shop.waiting(12)}
    lock_if_at = operations.lock_if_at

    async def lock_a_little_later(*arguments: Any, **options: Any) -> bool:
        await claim(connection, lane)  # all of them start after they were chosen
        return await lock_if_at(*arguments, **options)

    monkeypatch.setattr(operations, "lock_if_at", lock_a_little_later)
    operation = await shop.do("change", priority=1)

    assert (operation.done, operation.skipped, operation.is_over) == (0, BATCH, True)
    assert await connection.fetchval("select count(*) from audit where action = 'run.change'") == 0


async def test_runs_that_are_promoted_at_that_moment_are_changed_too(
    shop: Shop, connection: Connection, database: Database
) -> None:
    ids = [handle.id for handle in await shop.sell.options(delay=3600).submit_many([{}] * 3)]
    await connection.execute("update later set due_at = now() - interval '1 minute'")
    promoter = await database.connect("promoter")
    async with promoter.transaction():
        for lane in {lane_of(run_id) for run_id in ids}:
            await runs.promote(promoter, lane, [runs.LONG_AGO] * 10, 10)
        changing = asyncio.create_task(shop.do("change", priority=1))
        await until(lambda: changing.done() or connection.fetchval(WAITERS))
        assert not changing.done()
    operation = await changing
    await promoter.close()

    assert (operation.done, operation.skipped) == (3, 0)
    assert {run.priority for run in [await shop.app.runs.find(run_id) for run_id in ids]} == {1}


async def test_two_who_work_on_one_operation_take_turns(url: str, shop: Shop, connection: Connection) -> None:
    ids = await shop.dead(40)
    operation = await shop.app.operations.start("requeue", RunFilter())

    async with Mainspring(url) as other:
        await asyncio.gather(_work(shop.app, operation.id), _work(other, operation.id))

    end = await shop.app.operations.find(operation.id)
    assert (end.done, end.skipped, end.is_over) == (40, 0, True)
    assert await connection.fetchval("select count(*) from audit where action = 'run.requeue'") == 40
    assert await shop.states(ids) == {State.READY}


async def _work(app: Mainspring, operation_id: UUID) -> None:
    async for _ in app.operations.work(operation_id, batch=3):
        await asyncio.sleep(0)


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "wanted", "options", "code"),
    [
        ("cancel", {"state": "succeeded"}, {}, "invalid-state"),
        ("purge", {"state": "ready"}, {}, "invalid-state"),
        ("change", {"state": "running"}, {"priority": 1}, "invalid-state"),
        ("change", {}, {}, "nothing-to-change"),
        ("change", {}, {"priority": 10}, "invalid-priority"),
        ("cancel", {}, {"priority": 1}, "invalid-change"),
        ("cancel", {}, {"reason": "\x00"}, "invalid-reason"),
        ("frob", {}, {}, "invalid-kind"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anything_is_written(
    shop: Shop, connection: Connection, kind: str, wanted: dict[str, Any], options: dict[str, Any], code: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await shop.app.operations.start(kind, run_filter(**wanted), **options)

    assert refused.value.code == code
    assert await connection.fetchval("select count(*) from operation") == 0


async def test_a_queue_or_operation_that_is_not_there(shop: Shop) -> None:
    await shop.waiting(1)
    with pytest.raises(QueueNotFound):
        await shop.app.operations.start("change", RunFilter(), queue="nowhere")
    with pytest.raises(OperationNotFound, match="There is no operation"):
        await shop.app.operations.find(uuid4())
    with pytest.raises(InvalidInput, match="'7' is not an operation's id"):
        await shop.app.operations.find("7")


@pytest.mark.parametrize("number", [0, -1, 1_001, True, 1.5])
async def test_a_batch_or_a_list_of_no_sensible_size_is_refused(shop: Shop, number: Any) -> None:
    operation = await shop.app.operations.start("cancel", RunFilter())
    with pytest.raises(InvalidInput, match=r"batch is .* must be a whole number from 1 to 1,000"):
        await anext(aiter(shop.app.operations.work(operation.id, batch=number)))
    with pytest.raises(InvalidInput, match=r"limit is .* must be a whole number from 1 to 1,000"):
        await shop.app.operations.list(limit=number)


async def test_an_operation_whose_filter_is_too_wide_is_not_started(
    shop: Shop, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.waiting(30)
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 3)
    monkeypatch.setattr(lists.Lists.count, "__kwdefaults__", {"bound": 1})

    with pytest.raises(FilterTooWide):
        await shop.app.operations.start("cancel", run_filter(tags=["x"]))

    assert await connection.fetchval("select count(*) from operation") == 0


async def test_operations_are_listed_newest_first(shop: Shop) -> None:
    first = await shop.app.operations.start("cancel", RunFilter())
    second = await shop.do("purge")

    latest = await shop.app.operations.list()

    assert [each.id for each in latest] == [second.id, first.id]
    assert [each.is_over for each in latest] == [True, False]
    assert latest[0].kind is OperationKind.PURGE
    assert latest[0].wanted.states == (State.DEAD,)
