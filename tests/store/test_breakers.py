"""Circuit breakers: they open after failures, hold runs without an attempt, let single probes out, and close again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import Breaker, BreakerState, Context, Fail, Limit, Mainspring, RetryPolicy, Snooze
from mainspring.clock import instant
from mainspring.errors import BreakerNotFound, InvalidInput, JobNotFound
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.model.admission import Gate
from mainspring.model.breaker import Counts
from mainspring.model.lifecycle import HoldReason
from mainspring.store import breakers, openings
from mainspring.testing import run_until_idle

from .test_limits import LANES, places
from .working import working

if TYPE_CHECKING:
    from mainspring import BreakerStatus, Job
    from mainspring.clock import Clock
    from mainspring.model.breaker import OpeningStatus
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

ONCE = RetryPolicy(max_attempts=1)
PATIENT = RetryPolicy(max_attempts=50, first_delay=timedelta(seconds=1), back_off="constant", jitter="none")


class Target:
    """What a job calls: it works or it does not, for each customer."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.calls: list[tuple[str, int]] = []

    async def call(self, customer: str, number: int) -> None:
        self.calls.append((customer, number))
        if customer in self.broken:
            raise ConnectionError(f"{customer} is away")


@pytest.fixture
def target() -> Target:
    return Target()


def calling(app: Mainspring, target: Target, breaker: Breaker | None, **options: Any) -> Job[..., None]:
    async def send(customer: str = "acme", number: int = 0) -> None:
        await target.call(customer, number)

    decorate: Any = app.job
    job: Job[..., None] = decorate(name="send", breaker=breaker, **{"retry": ONCE} | options)(send)
    return job


async def fail(app: Mainspring, job: Job[..., None], target: Target, count: int, customer: str = "acme") -> None:
    """So many attempts fail, one after the other."""
    target.broken.add(customer)
    for _ in range(count):
        await job.submit(customer=customer)
        await run_until_idle(app)


async def release(connection: Connection, clock: Clock) -> None:
    """As the keeper does."""
    while await Gatekeeper(lanes=LANES, clock=clock).step(connection) == 0.0:
        pass


async def status(app: Mainspring) -> BreakerStatus:
    return (await app.breakers.show("send"))[0]


async def opening(app: Mainspring) -> OpeningStatus:
    (found,) = (await status(app)).openings
    return found


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_so_many_failures_open_it_and_then_runs_wait_without_an_attempt(
    frozen_app: Mainspring, connection: Connection, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(3))
    await fail(frozen_app, send, target, 2)
    assert ((await status(frozen_app)).state, (await status(frozen_app)).failures) == (BreakerState.CLOSED, 2)
    await fail(frozen_app, send, target, 1)
    found = await opening(frozen_app)
    assert (found.state, found.failures, found.error) == (BreakerState.OPEN, 3, "ConnectionError: acme is away")

    handle = await send.submit()
    await run_until_idle(frozen_app)

    assert len(target.calls) == 3
    run = await frozen_app.runs.find(handle.id)
    assert (run.attempts_spent, run.held_for) == (0, HoldReason.BREAKER)
    assert (await opening(frozen_app)).waiting == 1
    assert await places(connection) == {"held": 1, "dead": 3}


async def test_failures_that_are_long_over_do_not_count(
    frozen_app: Mainspring, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(3, within=60))
    for _ in range(6):
        await fail(frozen_app, send, target, 1)
        await clock.advance(31)

    assert (await status(frozen_app)).state is BreakerState.CLOSED
    await fail(frozen_app, send, target, 2)
    assert (await status(frozen_app)).state is BreakerState.OPEN


async def test_with_a_failure_ratio_successes_count_too(frozen_app: Mainspring, target: Target) -> None:
    send = calling(frozen_app, target, Breaker(3, failure_ratio=0.5))
    await send.submit_many([{"number": number} for number in range(10)])
    await run_until_idle(frozen_app)
    await fail(frozen_app, send, target, 9)
    assert (await status(frozen_app)).state is BreakerState.CLOSED, "nine of nineteen"
    await fail(frozen_app, send, target, 1)

    assert (await opening(frozen_app)).attempts == 20


async def test_many_values_open_in_one_write_and_too_many_as_a_whole(
    frozen_app: Mainspring, connection: Connection, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "MAX_OPEN_VALUES", 10)
    send = calling(frozen_app, target, Breaker(1, key="customer"))
    await send.submit(customer="fine")
    (rule,) = await openings.rules(connection, tenant_id=1)
    revision = "select revision from limit_revision"
    who = breakers.Who(1, "worker")

    async def trip(values: list[str]) -> set[str]:
        await breakers.tally(connection, LANES, {breakers.Gauge(rule, value): Counts(1, 0) for value in values})
        return {*await breakers.open_tripped(connection, LANES, rule, dict.fromkeys(values, "away"), who)}

    before = await connection.fetchval(revision)
    assert await trip(["a", "b", "c"]) == {"a", "b", "c"}
    assert await connection.fetchval(revision) == before + 4
    assert await trip(["a", "d"]) == {"d"}
    assert await trip([str(number) for number in range(10)]) == {""}
    before = await connection.fetchval(revision)
    assert await trip(["x", "y"]) == set()
    assert await connection.fetchval(revision) == before, "a job that is open as a whole has nothing more to open"


async def test_strict_order_is_kept_at_an_open_breaker(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(1), limit=Limit(1, order="strict"))
    await fail(frozen_app, send, target, 1)
    target.calls.clear()
    target.broken.clear()
    await send.options(priority=5).submit(number=1)
    await send.options(priority=1).submit(number=2)
    await run_until_idle(frozen_app)
    assert target.calls == []

    await clock.advance(60)
    await run_until_idle(frozen_app)

    assert [number for _, number in target.calls] == [1, 2]


async def test_each_value_of_a_key_has_a_breaker_of_its_own(frozen_app: Mainspring, target: Target) -> None:
    send = calling(frozen_app, target, Breaker(2, key="customer"))
    await fail(frozen_app, send, target, 2, "acme")
    await send.submit(customer="acme")
    fine = await send.submit(customer="other")
    await run_until_idle(frozen_app)

    assert (await frozen_app.runs.find(fine.id)).state == "succeeded"
    assert [each.value for each in (await status(frozen_app)).openings] == ["acme"]
    assert len(target.calls) == 3


async def test_what_is_the_fault_of_a_run_or_its_own_decision_does_not_count(frozen_app: Mainspring) -> None:
    ways: dict[str, Any] = {"fail": Fail("no such customer"), "snooze": Snooze(for_=3600)}

    @frozen_app.job(name="send", breaker=Breaker(1), retry=ONCE)
    async def send(context: Context, way: str) -> int:
        if way in ways:
            raise ways[way]
        return "not a number"  # type: ignore[return-value]

    for way in ("fail", "snooze", "unfit result"):
        await send.submit(way)
    await run_until_idle(frozen_app)

    assert (await status(frozen_app)).state is BreakerState.CLOSED


async def test_a_timeout_counts_as_a_failure(frozen_app: Mainspring) -> None:
    @frozen_app.job(name="send", breaker=Breaker(1), retry=ONCE, timeout=0.05)
    async def send() -> None:
        await asyncio.Event().wait()

    await send.submit()
    await run_until_idle(frozen_app, travel=True)

    assert (await opening(frozen_app)).failures == 1


async def test_a_run_that_lacks_the_key_counts_among_those_that_lack_it(frozen_app: Mainspring, target: Target) -> None:
    send = calling(frozen_app, target, Breaker(1, key="order.customer"))
    await fail(frozen_app, send, target, 1)

    assert (await opening(frozen_app)).value == "\\?"
    assert await frozen_app.breakers.close("send", value="\\?") == 1


async def test_open_for_too_many_values_it_is_open_for_the_job(
    frozen_app: Mainspring, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "MAX_OPEN_VALUES", 2)
    send = calling(frozen_app, target, Breaker(1, key="customer"))
    for customer in ("a", "b", "c"):
        await fail(frozen_app, send, target, 1, customer)
    await send.submit(customer="d")
    await run_until_idle(frozen_app)

    assert [each.value for each in (await status(frozen_app)).openings] == [None, "a", "b"]
    assert len(target.calls) == 3


# ── probes ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_probe_that_succeeds_closes_it_and_all_go_on(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(2, probe_after=30))
    await fail(frozen_app, send, target, 2)
    await send.submit_many([{"number": number} for number in range(10)])
    await run_until_idle(frozen_app)
    assert len(target.calls) == 2
    target.broken.clear()
    await clock.advance(29)
    await run_until_idle(frozen_app)
    assert len(target.calls) == 2, "not before its instant"
    await clock.advance(1)
    await run_until_idle(frozen_app)

    assert len(target.calls) == 12
    assert (await status(frozen_app)).state is BreakerState.CLOSED
    assert await places(connection) == {"dead": 2}


async def test_one_that_fails_leaves_it_open_and_the_next_waits_longer(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(2, probe_after=30, max_probe_after=100), retry=PATIENT)
    target.broken.add("acme")
    await send.submit_many([{"number": number} for number in range(20)])
    await run_until_idle(frozen_app)
    before = len(target.calls)
    probed_at: list[float] = []
    begin = instant(clock)
    for _ in range(40):
        await clock.advance(10)
        await run_until_idle(frozen_app)
        probed_at += [(instant(clock) - begin).total_seconds()] * (len(target.calls) - before)
        before = len(target.calls)

    assert probed_at == [30, 90, 190, 290, 390]
    assert (await opening(frozen_app)).probes == 5
    assert await places(connection) == {"held": 20}


async def test_a_probe_that_ends_without_a_verdict_is_followed_by_the_next(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(1, probe_after=30), max_age=timedelta(seconds=40))
    await fail(frozen_app, send, target, 1)
    expiring = await send.submit(number=1)
    await run_until_idle(frozen_app)
    await clock.advance(35)
    await release(connection, clock)
    assert (await opening(frozen_app)).probe_run == expiring.id
    await clock.advance(60)
    patient = await send.options(max_age=3600).submit(number=2)
    target.broken.clear()
    await run_until_idle(frozen_app, travel=True)

    assert (await frozen_app.runs.find(expiring.id)).state == "expired"
    assert (await frozen_app.runs.find(patient.id)).state == "succeeded"
    assert (await status(frozen_app)).state is BreakerState.CLOSED


async def test_beside_limits_whoever_waits_for_it_holds_no_slot(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(1, key="customer", probe_after=30), limit=Limit(1))
    await fail(frozen_app, send, target, 1, "acme")
    await send.submit_many([{"customer": "acme"}] * 3)
    await send.submit_many([{"customer": "other"}] * 3)
    await run_until_idle(frozen_app)

    assert target.calls.count(("other", 0)) == 3
    assert await places(connection) == {"held": 3, "dead": 1}
    target.broken.clear()
    await clock.advance(30)
    await run_until_idle(frozen_app)
    assert await places(connection) == {"dead": 1}


# ── by hand ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_opened_by_hand_it_stays_open_until_somebody_closes_it(
    frozen_app: Mainspring, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(5))
    await send.submit()
    await run_until_idle(frozen_app)
    await frozen_app.breakers.open("send", probes=False, reason="they move house")
    await send.submit()
    await clock.advance(86_400)
    await run_until_idle(frozen_app)
    found = await opening(frozen_app)
    assert (len(target.calls), found.waiting, found.next_probe_at, found.reason) == (1, 1, None, "they move house")

    assert await frozen_app.breakers.close("send", reason="they have") == 1
    await run_until_idle(frozen_app)

    assert len(target.calls) == 2
    assert await frozen_app.breakers.close("send") == 0


async def test_one_that_opened_by_itself_can_be_kept_open(
    frozen_app: Mainspring, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(1, probe_after=1))
    await fail(frozen_app, send, target, 1)
    await frozen_app.breakers.open("send", probes=False)
    await send.submit()
    target.broken.clear()
    await clock.advance(3600)
    await run_until_idle(frozen_app)

    assert len(target.calls) == 1
    assert len((await status(frozen_app)).openings) == 1


async def test_failures_of_before_it_closed_do_not_open_it_again(frozen_app: Mainspring, target: Target) -> None:
    send = calling(frozen_app, target, Breaker(3))
    await fail(frozen_app, send, target, 3)
    await frozen_app.breakers.close("send")
    await fail(frozen_app, send, target, 2)
    assert (await status(frozen_app)).state is BreakerState.CLOSED
    await fail(frozen_app, send, target, 1)

    assert (await status(frozen_app)).state is BreakerState.OPEN


async def test_a_breaker_set_and_removed_live_is_in_force_for_workers_that_run(
    app: Mainspring, connection: Connection, target: Target
) -> None:
    send = calling(app, target, None)
    target.broken.add("acme")
    async with working(app):
        await send.submit()
        await until(lambda: target.calls)
        await app.breakers.set("send", 2, probe_after=3600, reason="they are shaky")
        await until(lambda: _fails_until_open(app, send))
        target.broken.clear()
        waiting = await send.submit()
        await until(lambda: _waiting(app))
        calls = len(target.calls)
        assert await app.breakers.remove("send") is True
        await release(connection, app.clock)
        await waiting.result()
        assert len(target.calls) > calls

    with pytest.raises(BreakerNotFound):
        await app.breakers.show("send")


async def _fails_until_open(app: Mainspring, job: Job[..., None]) -> bool:
    await job.submit()
    return (await status(app)).state is BreakerState.OPEN


async def _waiting(app: Mainspring) -> bool:
    return (await status(app)).waiting > 0


# ── what people see ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_explain_names_it_and_says_when_the_next_probe_goes_out(
    frozen_app: Mainspring, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(2, key="customer", probe_after=30))
    await fail(frozen_app, send, target, 2)
    opened_at = (await opening(frozen_app)).opened_at
    handle = await send.submit()
    await run_until_idle(frozen_app)
    async with working(frozen_app):
        told = await frozen_app.runs.explain(handle.id)

    assert told.gate is Gate.BREAKER
    assert told.says == (
        f"the circuit breaker of job send for customer acme opened at {opened_at:%Y-%m-%d %H:%M:%S} UTC"
        " after 2 failures in 60 s (last: ConnectionError: acme is away); the next probe goes out at"
        f" {opened_at + timedelta(seconds=30):%Y-%m-%d %H:%M:%S} UTC"
    )
    assert told.remedy == "mainspring breaker close --job send --value acme"
    assert told.earliest_at == opened_at + timedelta(seconds=30)


async def test_history_tells_who_opened_and_closed_it_and_why(
    frozen_app: Mainspring, clock: FrozenClock, target: Target
) -> None:
    send = calling(frozen_app, target, Breaker(2, probe_after=30))
    await fail(frozen_app, send, target, 2)
    await send.submit()
    target.broken.clear()
    await clock.advance(30)
    await run_until_idle(frozen_app)
    await frozen_app.breakers.open("send", reason="to be safe")

    _, events = await frozen_app.breakers.show("send")

    told = [(each.action, each.actor.split(" ")[0]) for each in events]
    assert told == [
        ("breaker.open", "tester"),
        ("breaker.close", "worker"),
        ("breaker.open", "worker"),
        ("breaker.set", "tester"),
    ]
    assert (events[2].detail["failures"], events[2].detail["error"]) == (2, "ConnectionError: acme is away")
    assert events[0].detail["reason"] == "to be safe"


# ── in code, and bad input ──────────────────────────────────────────────────────────────────────────────────────


async def test_what_somebody_set_stays_until_the_code_says_something_else(url: str, target: Target) -> None:
    async def deployed(breaker: Breaker | None) -> tuple[int, bool] | None:
        app = Mainspring(url)
        await calling(app, target, breaker).submit()
        found = await app.breakers.list()
        await app.close()
        return (found[0].breaker.failures, found[0].is_as_declared) if found else None

    assert await deployed(Breaker(5)) == (5, True)
    app = Mainspring(url)
    await app.breakers.set("send", 9)
    await app.close()
    assert await deployed(Breaker(5)) == (9, False)
    assert await deployed(Breaker(6)) == (6, True)
    assert await deployed(Breaker(5)) == (6, True), "older code brings nothing back"
    assert await deployed(None) is None


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"failures": 0}, "invalid-failures"),
        ({"within": 0}, "invalid-within"),
        ({"within": timedelta(days=2)}, "invalid-within"),
        ({"failure_ratio": 0}, "invalid-failure-ratio"),
        ({"failure_ratio": 1.5}, "invalid-failure-ratio"),
        ({"probe_after": "soon"}, "invalid-probe-after"),
        ({"probe_after": 60, "max_probe_after": 30}, "invalid-max-probe-after"),
        ({"key": "__import__('os')"}, "invalid-limit-key"),
        ({"reason": "x" * 2000}, "invalid-reason"),
    ],
)
async def test_bad_input_is_refused(app: Mainspring, target: Target, options: dict[str, Any], code: str) -> None:
    await calling(app, target, None).submit()

    with pytest.raises(InvalidInput) as refused:
        await app.breakers.set("send", **options)
    assert refused.value.code == code
    assert await app.breakers.list() == []


async def test_jobs_that_do_not_exist_or_have_none_are_told_apart(app: Mainspring, target: Target) -> None:
    await calling(app, target, None).submit()

    for act in (app.breakers.show, app.breakers.open, app.breakers.close, app.breakers.remove):
        with pytest.raises(BreakerNotFound, match="Job send has no circuit breaker"):
            await act("send")
        with pytest.raises(JobNotFound):
            await act("nobody")
    with pytest.raises(JobNotFound):
        await app.breakers.set("nobody")
    await app.breakers.set("send")
    with pytest.raises(InvalidInput, match="has no key"):
        await app.breakers.open("send", value="acme")


async def test_a_breaker_is_removed_with_what_it_holds(
    frozen_app: Mainspring, connection: Connection, target: Target
) -> None:
    send = calling(frozen_app, target, None)
    await send.submit()
    await frozen_app.breakers.set("send", 1)
    await fail(frozen_app, send, target, 1)
    await send.submit_many([{}] * 3)
    await run_until_idle(frozen_app)
    target.broken.clear()
    assert await frozen_app.breakers.remove("send", reason="no more") is True
    await run_until_idle(frozen_app)

    assert (await places(connection))["dead"] <= 2
    assert "held" not in await places(connection)
    assert await connection.fetchval("select count(*) from breaker_opening") == 0
    actions = await connection.fetch("select action from audit where subject = 'breaker of job send' order by at")
    assert sorted(row["action"] for row in actions) == [f"breaker.{act}" for act in ("close", "open", "remove", "set")]


async def test_with_another_key_it_is_closed_for_the_values_of_before(frozen_app: Mainspring, target: Target) -> None:
    send = calling(frozen_app, target, Breaker(1, key="customer"))
    await fail(frozen_app, send, target, 1)
    await frozen_app.breakers.set("send", 1, key="customer", probe_after=60)
    assert (await status(frozen_app)).open_values == 1
    await frozen_app.breakers.set("send", 1, key="number")

    assert (await status(frozen_app)).open_values == 0


async def test_what_began_before_it_closed_is_not_held_against_it(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock
) -> None:
    may_fail, running = asyncio.Event(), []

    @frozen_app.job(name="send", breaker=Breaker(2), retry=ONCE)
    async def send(number: int) -> None:
        running.append(number)
        if number < 5:
            await may_fail.wait()
        raise ConnectionError("away")

    async with working(frozen_app) as worker:
        await send.submit_many([{"number": number} for number in range(5)])
        await until(lambda: len(running) == 5)
        await frozen_app.breakers.open("send")
        await frozen_app.breakers.close("send")
        await frozen_app.breakers.open("send")
        await worker.parts.gating.refresh(connection)
        await clock.advance(1)
        await frozen_app.breakers.close("send")
        await worker.parts.gating.refresh(connection)
        may_fail.set()
        await until(lambda: connection.fetchval("select count(*) = 5 from dead"))
        await worker.parts.breakers.flush()
        assert (await status(frozen_app)).failures == 0
        await send.submit(number=6)
        await until(lambda: connection.fetchval("select count(*) = 6 from dead"))
        await worker.parts.breakers.flush()

        assert (await status(frozen_app)).failures == 1


async def test_what_waits_inside_a_worker_when_it_opens_is_held_without_an_attempt(
    frozen_app: Mainspring, connection: Connection
) -> None:
    may_end, running = asyncio.Event(), []

    @frozen_app.job(name="send", breaker=Breaker(5))
    async def send(number: int) -> None:
        running.append(number)
        await may_end.wait()

    async with working(frozen_app, slots=1) as worker:
        executor = worker.parts.executor
        handles = await send.submit_many([{"number": number} for number in range(3)])
        await until(lambda: running)
        await worker.parts.claimer.look()
        await frozen_app.breakers.open("send", probes=False)
        await worker.parts.gating.refresh(connection)
        await until(lambda: not worker.parts.gating.has_opened.is_set())
        may_end.set()
        await until(lambda: connection.fetchval("select count(*) = 2 from held"))

        assert len(running) == 1
        assert executor.is_idle
    assert {(await frozen_app.runs.find(each.id)).attempts_spent for each in handles[1:]} <= {0, 1}
