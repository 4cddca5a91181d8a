"""Limits and runs that change while runs wait: nobody is forgotten, and nobody blocks others for ever."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import until

from mainspring import Context, Limit, Mainspring, RetryPolicy
from mainspring.clock import instant
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.model.concurrency import home_of_gate
from mainspring.store import admission, limits
from mainspring.testing import run_until_idle

from .test_limits import LANES, SUBMITTING, Crowd, limited, places, release, rows
from .working import working

if TYPE_CHECKING:
    from mainspring import Job
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

HOURLY = RetryPolicy(max_attempts=3, first_delay=timedelta(hours=1))


@pytest.fixture
def crowd() -> Crowd:
    SUBMITTING.clear()
    found = Crowd()
    found.may_end.set()
    return found


async def know_limits(app: Mainspring) -> None:
    """Whoever submits here looks at them anew."""
    books = (await app.services()).rule_books
    books._books.clear()
    await books.of(app.actor.tenant)


async def gates_of_slots(connection: Connection) -> list[str]:
    return [row["gate"] for row in await connection.fetch("select gate from slot")]


# ── several limits ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_limit_of_a_job_behind_one_of_a_queue_with_a_key_is_neither_exceeded_nor_forgotten(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    """Its runs are in the lanes of the queue's gates then."""
    send = limited(frozen_app, crowd, Limit(3), queue="mail")
    await send.submit(customer="first")
    await run_until_idle(frozen_app)
    await frozen_app.limits.set(1, queue="mail", key="customer")
    await know_limits(frozen_app)
    for number in range(30):
        await send.submit(customer=f"c{number}")
        if number % 5 == 0:
            await release(connection, clock)
    await release(connection, clock)

    assert len([gate for gate in await gates_of_slots(connection) if ":" not in gate]) == 3
    await run_until_idle(frozen_app)
    assert await places(connection) == {}


@pytest.mark.parametrize("change", ["remove", "order"])
async def test_who_waits_in_another_lane_at_a_limit_that_is_gone_goes_on(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, change: str
) -> None:
    send = limited(frozen_app, crowd, Limit(50), queue="mail")
    await send.submit()
    await frozen_app.limits.set(1, queue="mail")
    await know_limits(frozen_app)
    for number in range(10):
        await send.options(key=f"order-{number}").submit(number=number)
    await release(connection, clock)
    assert await connection.fetchval("select count(distinct lane) > 1 from held")

    if change == "remove":
        await frozen_app.limits.remove(queue="mail")
    else:
        await frozen_app.limits.set(1, queue="mail", order="strict")
    await run_until_idle(frozen_app)

    assert (len(crowd.order), await places(connection)) == (11, {})


async def test_a_run_never_claims_to_hold_a_slot_of_a_limit_that_was_gone(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    """Else a worker that knows the old limit only would take it for one that may start."""
    send = limited(frozen_app, crowd, Limit(1))
    await send.submit_many([{"number": number} for number in range(10)])
    await release(connection, clock)
    await frozen_app.limits.set(1, job="send", order="strict")
    await release(connection, clock)

    assert await connection.fetchval("select count(*) from ready where gates is not null") == 1
    assert await connection.fetchval("select count(*) from slot") == 1


# ── strict order beside other limits ────────────────────────────────────────────────────────────────────────────


async def test_strict_order_behind_a_narrower_limit_blocks_nobody_for_ever(
    frozen_app: Mainspring, connection: Connection
) -> None:
    """A run that backs off keeps what it passed before the strict gate, too: else the next takes it, and both wait."""
    done: list[int] = []

    @frozen_app.job(limit=[Limit(1, key="customer"), Limit(1, order="strict")], retry=HOURLY)
    async def post(context: Context, customer: str, number: int) -> None:
        if number == 0 and context.attempt == 1:
            raise ValueError("not yet")
        done.append(number)

    for number in range(3):
        await post.submit(customer="acme", number=number)
    await run_until_idle(frozen_app, travel=True)

    assert (sorted(done), await places(connection)) == ([0, 1, 2], {})


async def test_two_that_swap_their_keys_do_not_wait_for_each_other(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job(limit=Limit(1, key="customer", order="strict"), retry=HOURLY)
    async def post(customer: str, is_well: bool = False) -> None:
        if not is_well:
            raise ValueError("not yet")

    one, other = await post.submit(customer="a"), await post.submit(customer="b")
    await run_until_idle(frozen_app)
    assert await places(connection) == {"later": 2, "slot": 2}
    await frozen_app.runs.change(one.id, arguments={"customer": "b", "is_well": True})
    await frozen_app.runs.change(other.id, arguments={"customer": "a", "is_well": True})
    await run_until_idle(frozen_app, travel=True)

    assert await places(connection) == {}


async def test_a_run_that_is_put_off_gives_back_what_it_has_passed(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, [Limit(1, key="customer"), Limit(1)])
    await send.submit(customer="a")
    await release(connection, clock)
    waiting = await send.submit(customer="b")
    await release(connection, clock)
    assert await places(connection) == {"ready": 1, "held": 1, "slot": 3}
    await frozen_app.runs.change(waiting.id, at=instant(clock) + timedelta(days=1))

    assert await places(connection) == {"ready": 1, "later": 1, "slot": 2}


async def test_a_dead_letter_that_is_to_halt_no_more_lets_the_next_pass(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job(limit=Limit(1, order="strict", on_dead="halt"), retry=RetryPolicy(max_attempts=1))
    async def post(number: int) -> None:
        if number == 0:
            raise ValueError("broken")

    await post.submit(number=0)
    await post.submit(number=1)
    await run_until_idle(frozen_app)
    assert await places(connection) == {"held": 1, "dead": 1, "slot": 1}
    await frozen_app.limits.set(1, job="post", order="strict", on_dead="continue")
    await run_until_idle(frozen_app)

    assert await places(connection) == {"dead": 1}


async def test_what_one_transaction_submits_is_in_order(app: Mainspring, url: str) -> None:
    done: list[int] = []

    @app.job(limit=Limit(1, order="strict"))
    async def post(number: int) -> None:
        done.append(number)

    await post.submit(number=-1)
    own = await asyncpg.connect(url)
    async with own.transaction():
        for number in range(12):
            await post.options(connection=own, key=f"order-{number}").submit(number=number)
    await own.close()
    await run_until_idle(app)

    assert done == list(range(-1, 12))


# ── what keeps others waiting ───────────────────────────────────────────────────────────────────────────────────


async def test_a_paused_queue_takes_no_slots_from_others(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    jobs: dict[str, Job[..., None]] = {}
    for queue in ("paused", "open"):

        @frozen_app.job(name=queue, queue=queue)
        async def work(number: int) -> None:
            await crowd.join("any", number)

        jobs[queue] = work
        await work.submit(number=-1)
    await run_until_idle(frozen_app)
    await frozen_app.queues.pause("paused")
    await frozen_app.limits.set(2)
    await know_limits(frozen_app)
    for queue in ("paused", "open"):
        for number in range(3):
            await jobs[queue].submit(number=number)
    await run_until_idle(frozen_app)
    assert await places(connection) == {"held": 3}
    await frozen_app.queues.resume("paused")
    await run_until_idle(frozen_app)

    assert await places(connection) == {}


async def test_who_stops_in_the_middle_of_releasing_keeps_only_one_lane_waiting(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, database: Database
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit(customer="first")
    await release(connection, clock)
    (rule,) = (await limits.book(connection, tenant_id=frozen_app.actor.tenant)).rules
    frozen = await database.connect("frozen")
    stopped = frozen.transaction()
    await stopped.start()
    await frozen.execute("select from lane where lane = 0 for no key update")
    customers = [f"c{number}" for number in range(40)]
    elsewhere = [each for each in customers if home_of_gate(f"{rule.number}:{each}", LANES) != 0]
    await send.submit_many([{"customer": customer} for customer in customers])
    await until(lambda: rows(connection, "slot", 1 + len(elsewhere)))
    await Gatekeeper(lanes=LANES, clock=clock).step(connection)
    assert (await places(connection))["held"] == len(customers) - len(elsewhere)
    await stopped.rollback()
    await frozen.close()
    await release(connection, clock)

    assert "held" not in await places(connection)


async def test_a_payload_that_cannot_be_read_harms_nobody(app: Mainspring, connection: Connection) -> None:
    done: list[str] = []

    @app.job
    async def send(customer: str) -> None:
        done.append(customer)

    await send.submit(customer="broken")
    await connection.execute("update ready set payload = '\\x7b'")
    await app.limits.set(1, job="send", key="customer")
    await know_limits(app)
    async with working(app, keeper=True) as worker:
        await (await send.submit(customer="sound")).result()
        await until(lambda: rows(connection, "dead", 1))
        assert worker.failure() is None

    assert done == ["sound"]


async def test_many_who_wait_at_many_open_gates_are_not_all_looked_at(
    frozen_app: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    crowd: Crowd,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When a limit is raised, many may pass; what is looked at stays near what one transaction lets pass."""
    monkeypatch.setattr(admission, "MOST_RUNS", 10)
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit_many([{"customer": f"c{number % 5}"} for number in range(100)])
    await release(connection, clock)
    looked: list[int] = []
    waiting = admission._waiting

    async def counted(*arguments: Any) -> Any:
        found = await waiting(*arguments)
        looked.append(len(found))
        return found

    monkeypatch.setattr(admission, "_waiting", counted)
    await frozen_app.limits.set(100, job="send", key="customer")
    await release(connection, clock)

    assert "held" not in await places(connection)
    assert max(looked) <= 10 + 5


async def test_that_runs_are_elsewhere_is_written_down_once(
    frozen_app: Mainspring, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks: list[int] = []
    mark = limits.mark_spread

    async def counted(connection: Connection, rules: Any) -> None:
        marks.append(1)
        await mark(connection, rules)

    monkeypatch.setattr(limits, "mark_spread", counted)
    send = limited(frozen_app, crowd, Limit(1))
    for number in range(5):
        await send.options(key=f"order-{number}").submit(number=number)
        await know_limits(frozen_app)

    assert len(marks) == 1


# ── seeing ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_limit_shows_its_own_values_whatever_the_numbers_of_others(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit_many([{"customer": "acme"}] * 3)
    await release(connection, clock)
    number = await connection.fetchval("select id from limit_rule")
    await connection.execute(
        "insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, payload, reason, gates,"
        " gate, turn) select lane, gen_random_uuid(), 1, 1, 1, 1, 5, clock_now(), '{}', 'limit', gate, gate, 1"
        " from generate_series(0, 7) as lane,"
        " (select $1 || '0:' || n as gate from generate_series(1, 150) as n) as other",
        str(number),
    )
    await connection.execute("delete from slot; delete from ready")

    _, gates = await frozen_app.limits.show(job="send", key="customer")

    assert [(gate.value, gate.waiting) for gate in gates] == [("acme", 2)]


async def test_a_removed_limit_that_the_code_declares_says_so(frozen_app: Mainspring, crowd: Crowd) -> None:
    await limited(frozen_app, crowd, Limit(1)).submit()
    await frozen_app.limits.set(3, queue="default")

    assert await frozen_app.limits.remove(queue="default")
    assert not await frozen_app.limits.remove(job="send")
    assert await frozen_app.limits.list() == []
