"""Dead letters: requeued once whoever asks, or purged; on record either way."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.checker import check

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import InvalidArguments, InvalidInput, ResultTimeout, RunCancelled, RunFailed, RunNotFound
from mainspring.model.lifecycle import Outcome, State
from mainspring.store.functions import all_functions
from mainspring.store.statements import load
from mainspring.testing import FrozenClock, run_until_idle

from .test_cancelling import audit_of, unknown_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.app.handle import Handle
    from mainspring.app.job import Job
    from mainspring.store.connection import Connection


ONCE = RetryPolicy(max_attempts=2, first_delay=timedelta(0))


class Broken:
    """A job that fails until it is mended."""

    def __init__(self, app: Mainspring) -> None:
        self.is_mended = False

        @app.job(retry=ONCE, max_age=timedelta(hours=1))
        async def pay(amount: int = 1) -> int:
            if not self.is_mended:
                raise ValueError(f"no {amount}")
            return amount

        self.app = app
        self.pay: Job[Any, int] = pay

    async def dead(self, **options: Any) -> Handle[int]:
        """A run that is out of attempts."""
        handle = await self.pay.options(**options).submit()
        await run_until_idle(self.app)
        assert (await handle.find()).state is State.DEAD
        return handle


@pytest.fixture
def broken(app: Mainspring) -> Broken:
    return Broken(app)


# ── requeue ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_requeued_run_is_the_same_run_with_its_history_and_all_attempts_again(
    app: Mainspring, broken: Broken
) -> None:
    handle = await broken.dead(tags=["a"])

    moved = await app.runs.requeue(handle.id, reason="the bank is back")

    run = await handle.find()
    assert (moved.done, moved.skipped) == ([handle.id], [])
    assert (run.state, run.attempts_spent, run.fence, run.tags, run.payload) == (
        State.READY,
        0,
        2,
        ["a"],
        {"amount": 1},
    )
    assert await run_until_idle(app) == {"failed": 2}
    assert [each.fence for each in (await handle.find()).attempts] == [1, 2, 3, 4]
    assert (await handle.find()).state is State.DEAD


async def test_who_and_why_are_on_record(app: Mainspring, broken: Broken, connection: Connection) -> None:
    first, second = await broken.dead(), await broken.dead()

    await app.runs.requeue(first.id, reason="the bank is back")
    await app.runs.purge(second.id, reason="paid in cash")

    assert await audit_of(connection, first.id) == [("tester", "run.requeue", {"reason": "the bank is back"})]
    assert await audit_of(connection, second.id) == [("tester", "run.purge", {"reason": "paid in cash"})]
    assert [each.what for each in (await first.find()).transitions if each.what.startswith("run.")] == ["run.requeue"]


async def test_a_requeued_run_no_longer_expires_unless_it_is_given_a_new_age(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    broken = Broken(frozen_app)
    first, second = await broken.dead(), await broken.dead()
    await clock.advance(timedelta(days=2))

    await frozen_app.runs.requeue(first.id)
    await frozen_app.runs.requeue(second.id, max_age=60)

    assert (await first.find()).expires_at is None
    assert (await second.find()).expires_at == clock.at + timedelta(minutes=1)
    broken.is_mended = True
    assert await run_until_idle(frozen_app) == {"succeeded": 2}


async def test_a_run_can_be_requeued_with_other_arguments(
    app: Mainspring, broken: Broken, connection: Connection
) -> None:
    handle = await broken.dead()
    broken.is_mended = True

    await app.runs.requeue(handle.id, arguments={"amount": 7})
    await run_until_idle(app)

    assert await handle.result() == 7
    assert await audit_of(connection, handle.id) == [("tester", "run.requeue", {"reason": "", "changed": ["payload"]})]


async def test_arguments_that_do_not_fit_are_refused_and_the_run_stays_dead(app: Mainspring, broken: Broken) -> None:
    handle, other = await broken.dead(), await broken.dead()

    with pytest.raises(InvalidArguments, match="argument 'amount' does not fit"):
        await app.runs.requeue(handle.id, arguments={"amount": "much"})
    with pytest.raises(InvalidInput, match="New arguments for 2 runs were given"):
        await app.runs.requeue(handle.id, other.id, arguments={"amount": 1})

    assert (await handle.find()).state is State.DEAD


async def test_who_waits_for_a_requeued_run_waits_for_its_new_end(app: Mainspring, broken: Broken) -> None:
    handle = await broken.dead()
    with pytest.raises(RunFailed, match="no 1"):
        await handle.result(timeout=20)

    await app.runs.requeue(handle.id)
    with pytest.raises(ResultTimeout):
        await handle.result(timeout=0.05)

    broken.is_mended = True
    await run_until_idle(app)
    assert await handle.result(timeout=20) == 1


async def test_the_key_of_a_dead_run_still_stands_for_it(frozen_app: Mainspring, clock: FrozenClock) -> None:
    broken = Broken(frozen_app)
    handle = await broken.dead(key="invoice-7")
    await clock.advance(timedelta(days=30))
    async with (await frozen_app.services()).store.database.acquire() as connection:
        for lane in range(8):
            await load("runs/forget_keys").fetchval(connection, lane=lane, count=100)

    assert await broken.pay.options(key="invoice-7").submit() == handle


# ── purge ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_purged_run_has_ended_and_its_history_stays(app: Mainspring, broken: Broken) -> None:
    handle = await broken.dead()

    assert (await app.runs.purge(handle.id, reason="hopeless")).done == [handle.id]

    run = await handle.find()
    assert (run.state, run.payload) == (State.CANCELLED, {"amount": 1})
    assert [(each.number, each.outcome) for each in run.attempts] == [
        (1, Outcome.FAILED),
        (2, Outcome.FAILED),
        (0, Outcome.CANCELLED),
    ]
    assert run.attempts[-1].error == {"code": "purged", "message": "hopeless"}
    with pytest.raises(RunCancelled):
        await handle.result(timeout=20)


# ── what is not dead ────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_is_not_dead_is_skipped_and_said_so(app: Mainspring, broken: Broken) -> None:
    dead, waiting = await broken.dead(), await broken.pay.options(delay=60).submit()
    nowhere = unknown_id(3)

    moved = await app.runs.requeue(waiting.id, dead.id, nowhere, dead.id)

    assert moved == ([dead.id], [waiting.id, nowhere])
    with pytest.raises(RunNotFound):
        await app.runs.purge(unknown_id(8))
    with pytest.raises(InvalidInput, match="is not a run id"):
        await app.runs.purge("7")
    with pytest.raises(InvalidInput, match="1,001 runs at once"):
        await app.runs.purge(*(unknown_id(0) for _ in range(1_001)))


# ── races ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def race(url: str, run_ids: list[Any]) -> list[int]:
    """Five operators, each with a connection of their own, requeue the same dead letters in different orders."""
    operators = [Mainspring(url, submitted_by=f"operator {n}") for n in range(5)]
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda app=app, at=at: app.runs.requeue(*run_ids[at * 4 :], *run_ids[: at * 4])  # type: ignore[misc]
        for at, app in enumerate(operators)
    ]
    try:
        for app in operators:
            await app.services()
        return [len(moved.done) for moved in await asyncio.gather(*(call() for call in calls))]
    finally:
        for app in operators:
            await app.close()


async def test_operators_who_requeue_the_same_dead_letters_at_once_requeue_each_once(
    url: str, app: Mainspring, broken: Broken, connection: Connection
) -> None:
    handles = await broken.pay.submit_many([{}] * 20)
    await run_until_idle(app)

    requeued = await race(url, [handle.id for handle in handles])

    assert sum(requeued) == 20
    assert await connection.fetchval("select count(*) from audit where action = 'run.requeue'") == 20
    report = await check(connection, [handle.id for handle in handles])
    assert report.violations == [], report
    broken.is_mended = True
    assert await run_until_idle(app) == {"succeeded": 20}


async def test_a_requeue_that_looks_before_it_takes_would_requeue_twice(
    app: Mainspring, broken: Broken, connection: Connection, url: str
) -> None:
    """The control: without the delete as its guard, the second operator counts what the first one took."""
    handle = await broken.dead()
    taking = re.compile(r"delete from dead (where.*?)\s+returning (run_of.*? as run)\)", re.DOTALL)
    await connection.execute(taking.sub(r"select \2 from dead \1)", all_functions()["requeue_runs"]))

    first = await app.runs.requeue(handle.id)
    await connection.execute("delete from ready")  # a worker took it
    second = await app.runs.requeue(handle.id)

    assert (len(first.done), len(second.done)) == (1, 1)
    report = await check(connection, [handle.id])
    assert "runs in more than one place" in [finding.what for finding in report.violations]
