"""Runs wait in lines: by queue, by the labels they require of a worker, and by how they are delivered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import Calls, until

from mainspring.errors import InvalidInput, QueueNotFound
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.line import Delivery, Line
from mainspring.store import jobs
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection


@pytest.fixture
def shop(app: Mainspring) -> Mainspring:
    @app.job
    async def plain() -> str:
        return "plain"

    @app.job(labels={"gpu"})
    async def render() -> str:
        return "rendered"

    @app.job(delivery="at_most_once", labels=["gpu"])
    async def pay() -> str:
        return "paid"

    return app


def job(app: Mainspring, name: str) -> Any:
    from mainspring.app.job import Job

    return Job(app, app.registry.find(name))


# ── where runs wait ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_waits_in_the_line_of_its_queue_labels_and_delivery(shop: Mainspring) -> None:
    rendering = await job(shop, "render").submit()
    paying = await job(shop, "pay").options(labels=["eu", "gpu"]).submit()

    assert ((await rendering.find()).labels, (await rendering.find()).delivery) == (["gpu"], Delivery.AT_LEAST_ONCE)
    assert ((await paying.find()).labels, (await paying.find()).delivery) == (["eu", "gpu"], Delivery.AT_MOST_ONCE)


async def test_labels_given_for_a_run_replace_those_of_its_job(shop: Mainspring) -> None:
    anywhere = await job(shop, "render").options(labels=()).submit()

    assert (await anywhere.find()).labels == []


async def test_a_run_that_moves_to_another_queue_keeps_its_labels_and_its_delivery(shop: Mainspring) -> None:
    shop.job(name="other", queue="other")(lambda: None)
    await job(shop, "other").submit()
    handle = await job(shop, "pay").submit()

    run = await shop.runs.change(handle.id, queue="other")

    assert (run.queue, run.labels, run.delivery) == ("other", ["gpu"], Delivery.AT_MOST_ONCE)
    with pytest.raises(QueueNotFound, match="'others'"):
        await shop.runs.change(handle.id, queue="others")


async def test_a_line_is_made_once_whoever_asks_first(connection: Connection) -> None:
    line = Line("mail", ("eu", "gpu"), Delivery.TRANSACTIONAL)

    first, again = [await jobs.open_lines(connection, [line], tenant_id=DEFAULT_TENANT) for _ in range(2)]

    assert first == again
    assert set(first) == {Line("mail"), line}, "a queue always has its plain line"


async def test_labels_cannot_be_used_to_make_lines_without_end(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_LINES", 3)
    await jobs.open_lines(connection, [Line("mail", ("a",)), Line("mail", ("b",))], tenant_id=DEFAULT_TENANT)

    with pytest.raises(InvalidInput, match="'mail' has 3 different sets of labels") as caught:
        await jobs.open_lines(connection, [Line("mail", ("c",))], tenant_id=DEFAULT_TENANT)

    assert (caught.value.code, caught.value.fields["field"]) == ("too-many-lines", "labels")
    assert caught.value.hint is not None


async def test_a_program_that_knows_no_labels_takes_no_line_with_requirements_for_the_queue(
    connection: Connection,
) -> None:
    """What it does: the line of a queue is the one without labels."""
    lines = await jobs.open_lines(
        connection, [Line("mail", (), Delivery.AT_MOST_ONCE), Line("mail", ("gpu",))], tenant_id=DEFAULT_TENANT
    )
    rows = await connection.fetch("select id, queue, labels from line")

    assert {row["queue"]: row["id"] for row in rows if not row["labels"]} == {"mail": lines[Line("mail")]}


# ── who starts them ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_starts_only_what_it_has_the_labels_for(shop: Mainspring) -> None:
    rendering, plain = await job(shop, "render").submit(), await job(shop, "plain").submit()
    async with working(shop):
        assert await plain.result(20) == "plain"
        assert (await rendering.find()).lacks == "no live worker of queue default has labels gpu"
    assert (await rendering.find()).lacks == "no live worker serves queue default"
    async with working(shop, labels=("eu", "gpu")):
        assert await rendering.result(20) == "rendered"


async def test_a_line_that_appears_later_is_noticed_by_its_wake_up(shop: Mainspring) -> None:
    """The beat is a hundred seconds away."""
    async with working(shop, labels=("eu", "gpu")) as worker:
        handle = await job(shop, "plain").options(labels={"eu"}).submit()

        assert await handle.result(20) == "plain"
        assert Line("default", ("eu",)) in {worker.parts.lines[number] for number in worker.parts.lines}


async def test_a_line_that_appears_later_is_noticed_at_a_beat(shop: Mainspring, connection: Connection) -> None:
    async with working(shop, labels=("eu",), heartbeat_interval=0.2) as worker:
        await jobs.open_lines(connection, [Line("default", ("eu",))], tenant_id=DEFAULT_TENANT)
        await until(lambda: Line("default", ("eu",)) in {worker.parts.lines[number] for number in worker.parts.lines})


async def test_the_worker_of_the_test_kit_has_every_label(shop: Mainspring) -> None:
    await job(shop, "render").submit()
    await job(shop, "plain").options(labels={"somewhere"}).submit()
    await job(shop, "pay").submit()

    assert await run_until_idle(shop) == {"succeeded": 3}


# ── one at a time, into a free slot ─────────────────────────────────────────────────────────────────────────────


async def test_what_may_not_wait_in_a_worker_is_claimed_one_at_a_time_when_a_slot_is_free(
    app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, started = asyncio.Event(), []

    @app.job(delivery="at_most_once")
    async def once(number: int) -> None:
        started.append(number)
        await gate.wait()

    handles = await once.submit_many([{"number": number} for number in range(6)])
    async with working(app, slots=2, grace=20) as worker:
        await until(lambda: len(started) == 2)
        looks = Calls(worker.parts.claimer.look)
        monkeypatch.setattr(worker.parts.claimer, "look", looks)
        monkeypatch.setattr(worker.parts.executor.capacity, "room", lambda line=None: 10)  # for what may wait
        worker.parts.executor.capacity.has_room.set()
        await looks.more()  # after the first of them, all that may be claimed has been
        sizes = await connection.fetch("select cardinality(ids) as size from lease")
        assert [row["size"] for row in sizes] == [1, 1], "nothing beyond the slots, and each in a lease of its own"
        gate.set()
        for handle in handles:
            await handle.result(20)
    assert sorted(started) == list(range(6))


# ── several queues with weights ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("weights", [{"mail": 3, "reports": 1}, {"mail": 1, "reports": 3}])
async def test_under_contention_queues_are_served_in_proportion(app: Mainspring, weights: dict[str, int]) -> None:
    order: list[str] = []

    @app.job(queue="mail")
    async def mail() -> None:
        order.append("mail")

    @app.job(queue="reports")
    async def report() -> None:
        order.append("reports")

    await mail.submit_many([{}] * 4_000)
    await report.submit_many([{}] * 4_000)
    async with working(app, slots=5, weights=weights):
        await until(lambda: len(order) >= 4_000)

    shares = [order[:4_000].count(queue) / 4_000 for queue in ("mail", "reports")]
    expected = [weight / 4 for weight in weights.values()]
    assert shares == pytest.approx(expected, abs=0.15)  # a batch more or less
