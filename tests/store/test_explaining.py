"""Why a run is not running: each gate that can be closed is named, by the same words in the SDK and at the terminal."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from mainspring import Mainspring, RetryPolicy
from mainspring.clock import instant
from mainspring.errors import RunNotFound
from mainspring.model.admission import Gate
from mainspring.store import queues, workers
from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from mainspring import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def send(frozen_app: Mainspring) -> Job[..., int]:
    @frozen_app.job(queue="mail", retry=RetryPolicy(max_attempts=2))
    async def send(n: int = 0) -> int:
        return 1 // n

    return send


async def worker(connection: Connection, *handlers: str, labels: tuple[str, ...] = (), slots: int = 3) -> UUID:
    """One that lives, and serves the queue, and does nothing."""
    worker_id = uuid4()
    await workers.register(
        connection,
        worker_id=worker_id,
        host="mill",
        pid=7,
        queues=["mail"],
        handlers=handlers,
        labels=labels,
        slots=slots,
        lease_seconds=600,
        version="test",
    )
    return worker_id


async def test_a_run_that_is_due_later_says_when(send: Job[..., int], clock: FrozenClock) -> None:
    handle = await send.options(delay=90).submit()

    found = await handle.explain()

    assert (found.gate, found.earliest_at) == (Gate.NOT_DUE, instant(clock) + timedelta(seconds=90))
    assert [each.gate for each in found.then] == [Gate.NO_WORKER]
    assert (found.ahead, found.holders) == (None, [])


async def test_a_run_that_backs_off_says_after_how_many_attempts(
    frozen_app: Mainspring, send: Job[..., int], connection: Connection
) -> None:
    handle = await send.submit(n=0)
    await run_until_idle(frozen_app)
    assert (await handle.find()).state == "scheduled"
    await worker(connection, "send")

    found = await handle.explain()

    assert (found.gate, found.then) == (Gate.BACK_OFF, [])
    assert "after 1 attempt" in found.says
    assert found.earliest_at == (await handle.find()).due_at


async def test_a_paused_queue_is_named_with_who_paused_it_and_why(
    frozen_app: Mainspring, send: Job[..., int], connection: Connection
) -> None:
    handle = await send.submit()
    await worker(connection, "send")
    await frozen_app.queues.pause("mail", reason="provider down")

    found = await frozen_app.runs.explain(handle.id)

    assert found.gate is Gate.QUEUE_PAUSED
    assert "paused by tester" in found.says
    assert found.says.endswith("provider down")
    assert (found.remedy, found.earliest_at) == ("mainspring queue resume mail", None)

    await frozen_app.queues.resume("mail")
    assert (await handle.explain()).gate is Gate.WORKERS_BUSY


async def test_what_no_worker_has_is_named(send: Job[..., int], connection: Connection) -> None:
    handle = await send.options(labels={"gpu"}).submit()
    assert (await handle.explain()).gate is Gate.NO_WORKER
    await worker(connection, "send")
    assert (await handle.explain()).gate is Gate.NO_LABELS
    await worker(connection, labels=("gpu",))
    assert (await handle.explain()).gate is Gate.NO_HANDLER
    await worker(connection, "send", labels=("gpu",))
    assert (await handle.explain()).gate is Gate.WORKERS_BUSY


async def test_a_worker_that_is_to_drain_starts_nothing_more(
    frozen_app: Mainspring, send: Job[..., int], connection: Connection
) -> None:
    handle = await send.submit()
    worker_id = await worker(connection, "send")
    await frozen_app.workers.drain(worker_id)

    found = await handle.explain()

    assert (found.gate, found.holders) == (Gate.NO_WORKER, [])


async def test_a_held_run_says_who_is_missing_and_when_it_will_be_released(
    frozen_app: Mainspring, send: Job[..., int], url: str, clock: FrozenClock, connection: Connection
) -> None:
    handle = await send.submit()
    other = Mainspring(url, clock=clock)
    other.job(name="other", queue="mail")(lambda: None)
    async with other:
        await run_until_idle(other)
    held = await handle.find()
    assert held.state == "held"

    assert (await handle.explain()).gate is Gate.NO_WORKER
    await worker(connection, "other")
    assert (await handle.explain()).gate is Gate.NO_HANDLER
    await worker(connection, "send")
    assert "goes back in line" in (await handle.explain()).says


async def test_a_run_in_line_says_how_many_come_before_it_who_holds_slots_and_how_long_it_will_take(
    frozen_app: Mainspring, send: Job[..., int], connection: Connection, clock: FrozenClock
) -> None:
    """By priority and rank, over all lanes."""
    await send.submit_many([{"n": n} for n in range(20)])
    urgent = await send.options(priority=1).submit()
    last = await send.options(priority=9).submit()
    holding = await worker(connection, "send")
    line = await connection.fetchval("select line_id from ready limit 1")

    assert (await urgent.explain()).ahead == 0
    found = await last.explain()
    assert (found.gate, found.ahead, found.ahead_is_exact) == (Gate.WORKERS_BUSY, 21, True)
    assert [(each.worker_id, each.slots, each.holding) for each in found.holders] == [(holding, 3, 0)]
    assert (found.earliest_at, found.is_estimate) == (found.at, False), "nothing was measured yet"

    await queues.tell(connection, holding, {line: (0, 0.0, 2)})
    await queues.take_samples(connection)
    await clock.advance(10)
    await queues.tell(connection, holding, {line: (30, 9.0, 2)})

    found = await last.explain()
    assert found.earliest_at == instant(clock) + timedelta(seconds=7)  # 21 at three a second
    assert found.is_estimate
    assert [each.holding for each in found.holders] == [2]


async def test_what_workers_are_at_counts_in_how_long_a_run_in_line_will_wait(
    send: Job[..., int], connection: Connection, clock: FrozenClock
) -> None:
    """Thirty runs of five seconds on eight slots: eight have ended, eight are under way, and twelve wait in workers."""
    await send.submit_many([{"n": n} for n in range(22)])
    last = await send.options(priority=9).submit()
    busy = await worker(connection, "send", slots=8)
    line = await connection.fetchval("select line_id from ready limit 1")
    await queues.tell(connection, busy, {line: (0, 0.0, 8)})
    await queues.take_samples(connection)
    await clock.advance(9.9)
    await queues.tell(connection, busy, {line: (8, 40.0, 8)})

    found = await last.explain()
    assert found.earliest_at == instant(clock) + timedelta(seconds=22 / (8 / 5))

    await queues.tell(connection, busy, {line: (8, 40.0, 20)})
    found = await last.explain()
    assert found.earliest_at == instant(clock) + timedelta(seconds=(22 + 12) / (8 / 5))
    assert found.as_soon_as == "those before it have started"


async def test_a_run_behind_one_that_is_scheduled_starts_not_before_that_is_due(
    send: Job[..., int], clock: FrozenClock
) -> None:
    first = await send.options(delay=600).submit(n=1)
    second = await send.options(after=first).submit(n=1)
    third = await send.options(after=first, delay=3600).submit(n=1)

    found = await second.explain()
    assert (found.gate, found.as_soon_as) == (Gate.PARENT, f"run {first.id} succeeds")
    assert found.earliest_at == instant(clock) + timedelta(seconds=600)
    assert (await third.explain()).earliest_at == instant(clock) + timedelta(seconds=3600)


async def test_a_run_held_behind_one_that_was_cancelled_says_what_can_be_done(
    frozen_app: Mainspring, send: Job[..., int]
) -> None:
    first = await send.options(delay=600).submit(n=1)
    second = await send.options(after=first, otherwise="hold").submit(n=1)
    await first.cancel()
    await run_until_idle(frozen_app)

    found = await second.explain()

    assert found.gate is Gate.PARENT
    assert found.says == (
        f"it waits until run {first.id} succeeds, which was cancelled and does not run again;"
        " cancel this one, or retry the flow that both belong to"
    )
    assert (found.remedy, found.earliest_at) == (f"mainspring run cancel {second.id}", None)


async def test_a_run_that_does_not_wait_says_what_it_does(
    frozen_app: Mainspring, send: Job[..., int], clock: FrozenClock
) -> None:
    good, bad, unwanted = await send.submit(n=1), await send.submit(n=0), await send.submit(n=1)
    await unwanted.cancel()
    await run_until_idle(frozen_app)
    await clock.advance(3600)
    await run_until_idle(frozen_app)

    said: dict[Any, Any] = {each: await each.explain() for each in (good, bad, unwanted)}

    assert {found.gate for found in said.values()} == {None}
    assert "it is over: it succeeded at" in said[good].says
    assert "it is a dead letter, after 2 attempts" in said[bad].says
    assert said[bad].remedy == f"mainspring dead-letter requeue {bad.id}"
    assert "it was cancelled" in said[unwanted].says


async def test_a_run_that_nobody_knows_is_not_explained(frozen_app: Mainspring, send: Job[..., int]) -> None:
    handle = await send.submit()
    with pytest.raises(RunNotFound):
        await frozen_app.runs.explain(UUID(int=handle.id.int ^ 1))
