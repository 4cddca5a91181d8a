"""Retries, steering, timeouts and overrides of runs, with a real database whose time stands still."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.checker import check
from tests.registering import registered_worker
from tests.waiting import Calls, eventually

from mainspring import Cancel, Context, Fail, Retry, RetryPolicy, Snooze, State
from mainspring.errors import IdempotencyConflict, InvalidInput, RunCancelled, RunExpired, RunFailed
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of
from mainspring.model.policy import Overrides
from mainspring.model.run import PRIORITIES
from mainspring.model.steering import Steering
from mainspring.store import jobs, leases, runs, workers
from mainspring.testing import run_until_idle
from mainspring.worker.time_limits import PLAIN, Special, Timekeeper, special_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring import Handle, Mainspring, Run
    from mainspring.app.job import Job, JobDecorator
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    JobThatTakes = Callable[..., Job[[], str]]

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def job_that(app: Mainspring, *ends: Any, **options: Any) -> Job[[], Any]:
    """A job whose attempts end, one after the other, in what is given: raised if it is an exception, else returned."""
    left = list(ends)

    async def attempt() -> Any:
        end = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(end, BaseException):
            raise end
        return end

    decorate: JobDecorator = app.job(name="attempt", **options)
    return decorate(attempt)


def outcomes(run: Run) -> list[str]:
    return [attempt.outcome.value for attempt in run.attempts]


async def is_sound(connection: Connection, *handles: Handle[Any]) -> bool:
    report = await check(connection, [handle.id for handle in handles])
    return report.violations == []


async def expire_everything(connection: Connection) -> None:
    for lane in range(8):
        await runs.expire(connection, lane, 10)


# ── retries ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_failed_run_is_due_again_after_its_own_jittered_pause(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    policy = RetryPolicy(first_delay=HOUR, cap=HOUR, jitter="equal")
    handle = await job_that(frozen_app, ValueError("once"), "done", retry=policy).submit()

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert run.due_at - clock.at == policy.delay_after(1, run.id)
    assert HOUR / 2 <= run.due_at - clock.at < HOUR


@pytest.mark.parametrize(("error", "attempts"), [(ConnectionResetError(), 3), (KeyError("x"), 1), (ValueError(), 1)])
async def test_only_named_errors_are_worth_another_attempt(
    frozen_app: Mainspring, error: Exception, attempts: int
) -> None:
    policy = RetryPolicy(max_attempts=3, retry_on=(OSError, LookupError), never_on=(KeyError,))
    handle = await job_that(frozen_app, error, retry=policy).submit()

    await run_until_idle(frozen_app, travel=True)

    run = await handle.find()
    assert (run.state, outcomes(run), run.attempts_spent) == (State.DEAD, ["failed"] * attempts, attempts)


# ── steering ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hand_over", ["raise", "return"])
async def test_a_handler_asks_for_another_attempt_after_a_while(
    frozen_app: Mainspring, clock: FrozenClock, hand_over: str
) -> None:
    @frozen_app.job
    async def ask(context: Context) -> Any:
        again = Retry("busy", after=2 * HOUR)
        if context.attempt > 1:
            return "done"
        if hand_over == "raise":
            raise again
        return again

    handle = await ask.submit()
    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, run.due_at - clock.at, run.attempts_spent) == (State.SCHEDULED, 2 * HOUR, 1)
    assert run.attempts[0].error is not None
    assert (run.attempts[0].error["code"], run.attempts[0].error["message"]) == ("retry-asked", "busy")
    await run_until_idle(frozen_app, travel=True)
    assert await handle.result() == "done"


async def test_a_retry_at_an_instant_is_due_exactly_then(frozen_app: Mainspring, clock: FrozenClock) -> None:
    at = clock.at + timedelta(hours=5, microseconds=7)
    handle = await job_that(frozen_app, Retry(after=at)).submit()

    await run_until_idle(frozen_app)

    assert (await handle.find()).due_at == at


async def test_a_retry_without_a_time_waits_as_long_as_after_a_failure(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    handle = await job_that(frozen_app, Retry(), retry=RetryPolicy(first_delay=MINUTE)).submit()

    await run_until_idle(frozen_app)

    assert (await handle.find()).due_at == clock.at + MINUTE


async def test_asking_for_attempts_spends_them(frozen_app: Mainspring) -> None:
    policy = RetryPolicy(max_attempts=3, never_on=(Exception,))  # which is about errors, not about decisions
    handle = await job_that(frozen_app, Retry("still busy"), retry=policy).submit()

    await run_until_idle(frozen_app, travel=True)

    run = await handle.find()
    assert (run.state, outcomes(run)) == (State.DEAD, ["failed"] * 3)


async def test_a_snooze_spends_no_attempt_and_is_on_record(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    naps = [Snooze(for_=HOUR), Snooze("closed", until=clock.at + 3 * HOUR)]
    handle = await job_that(frozen_app, *naps, "done", retry=RetryPolicy(max_attempts=1)).submit()

    await run_until_idle(frozen_app)
    first = await handle.find()
    assert (first.state, first.due_at, first.attempts_spent) == (State.SCHEDULED, clock.at + HOUR, 0)

    assert await run_until_idle(frozen_app, travel=True) == {"snoozed": 1, "succeeded": 1}
    run = await handle.find()
    assert (outcomes(run), [attempt.number for attempt in run.attempts]) == (
        ["snoozed", "snoozed", "succeeded"],
        [1, 1, 1],
    )
    assert "closed" in [each.detail.partition(": ")[2] for each in run.transitions]
    assert await is_sound(connection, handle)


async def test_whoever_snoozes_until_the_past_comes_back_in_a_second(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    handle = await job_that(frozen_app, Snooze(until=clock.at - HOUR)).submit()

    await run_until_idle(frozen_app)

    assert (await handle.find()).due_at == clock.at + SECOND


async def test_a_run_that_always_snoozes_ends_by_its_maximum_age(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    handle = await job_that(frozen_app, Snooze(for_=MINUTE), max_age=HOUR).submit()
    for _ in range(3):
        await run_until_idle(frozen_app)
        await clock.advance(MINUTE)
    await clock.advance(HOUR)
    await expire_everything(connection)

    run = await handle.find()
    assert (run.state, outcomes(run)) == (State.EXPIRED, ["snoozed"] * 3 + ["expired"])


async def test_a_handler_cancels_its_run(frozen_app: Mainspring, connection: Connection) -> None:
    handle = await job_that(frozen_app, Cancel("the order is gone")).submit()

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, outcomes(run), run.payload) == (State.CANCELLED, ["cancelled"], {})
    with pytest.raises(RunCancelled, match="the order is gone"):
        await handle.result()
    assert await is_sound(connection, handle)


class Unheard(Steering):
    """A kind of decision that nobody knows what to make of."""


@pytest.mark.parametrize("kind", [Fail, Unheard])
async def test_a_handler_gives_its_run_up(frozen_app: Mainspring, kind: type[Steering]) -> None:
    handle = await job_that(frozen_app, kind("no such account")).submit()

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, outcomes(run), run.attempts_spent) == (State.DEAD, ["failed"], 1)
    with pytest.raises(RunFailed, match="no such account"):
        await handle.result()


async def test_the_cause_of_a_decision_is_kept(frozen_app: Mainspring) -> None:
    @frozen_app.job
    def call() -> None:
        try:
            raise ConnectionResetError("by peer")
        except ConnectionResetError as error:
            raise Retry(after=HOUR) from error

    handle = await call.submit()
    await run_until_idle(frozen_app)

    error = (await handle.find()).attempts[0].error
    assert error is not None
    assert "ConnectionResetError: by peer" in error["traceback"]


async def test_someone_who_cancels_is_heard_before_a_snooze(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def linger(context: Context) -> Any:
        await frozen_app.runs.cancel(context.run_id)
        return Snooze(for_=HOUR)

    handle = await linger.submit()
    await run_until_idle(frozen_app)

    assert (await handle.find()).state is State.CANCELLED


# ── timeouts ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def job_that_takes(frozen_app: Mainspring, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> JobThatTakes:
    """A job whose attempts take so long, one after the other, on the frozen clock."""
    sweeps = Calls(Timekeeper._sweep)
    monkeypatch.setattr(Timekeeper, "_sweep", lambda timekeeper: sweeps(timekeeper))

    def job_that_takes(*spans: timedelta, **options: Any) -> Job[[], str]:
        left, limit = list(spans), options.get("timeout", MINUTE)

        async def attempt() -> str:
            span = left.pop(0) if len(left) > 1 else left[0]
            passing = asyncio.create_task(clock.advance(span))  # not to be stopped half-way: the database is told last
            try:
                if span > limit:
                    await is_stopped()
            finally:
                await passing
            await sweeps.more()
            return "done"

        decorate: JobDecorator = frozen_app.job(name="attempt", **options)
        return decorate(attempt)

    return job_that_takes


async def is_stopped() -> None:
    await asyncio.Event().wait()


async def test_an_attempt_that_takes_too_long_is_tried_again(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, job_that_takes: JobThatTakes
) -> None:
    handle = await job_that_takes(HOUR, MINUTE, timeout=10 * MINUTE).submit()

    assert await run_until_idle(frozen_app) == {"timed_out": 1}
    await clock.advance(HOUR)
    assert await run_until_idle(frozen_app) == {"succeeded": 1}

    run = await handle.find()
    assert run.attempts[0].error is not None
    assert run.attempts[0].error["code"] == "attempt-timed-out"
    assert "await is_stopped()" in run.attempts[0].error["traceback"]  # where it was when its time was up
    assert await is_sound(connection, handle)


async def test_an_attempt_within_its_time_is_left_alone(frozen_app: Mainspring, job_that_takes: JobThatTakes) -> None:
    """The control."""
    handle = await job_that_takes(9 * MINUTE, timeout=10 * MINUTE).submit()

    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert await handle.result() == "done"


async def test_a_timeout_is_an_error_that_policies_know_by_name(
    frozen_app: Mainspring, job_that_takes: JobThatTakes
) -> None:
    policy = RetryPolicy(never_on=(TimeoutError,))
    handle = await job_that_takes(HOUR, timeout=MINUTE, retry=policy).submit()

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, outcomes(run)) == (State.DEAD, ["timed_out"])


async def test_a_plain_function_that_looks_at_its_context_stops_in_time(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    began = threading.Event()

    @frozen_app.job(timeout=MINUTE, retry=RetryPolicy(max_attempts=1))
    def look(context: Context) -> None:
        began.set()
        assert eventually(lambda: context.is_cancelled)
        context.raise_if_cancelled()

    handle = await look.submit()
    working = asyncio.create_task(run_until_idle(frozen_app))
    await asyncio.to_thread(began.wait)
    await clock.advance(MINUTE)
    await working

    assert outcomes(await handle.find()) == ["timed_out"]


async def test_what_is_done_before_it_is_given_up_stays_done(frozen_app: Mainspring, clock: FrozenClock) -> None:
    @frozen_app.job(timeout=MINUTE)
    async def insist(context: Context) -> str:
        passing = asyncio.create_task(clock.advance(MINUTE))
        try:
            await is_stopped()
        except asyncio.CancelledError:
            assert context.is_cancelled
        await passing
        return "done all the same"

    handle = await insist.submit()

    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert await handle.result() == "done all the same"


async def test_the_time_of_a_run_is_counted_over_all_its_attempts(
    frozen_app: Mainspring, clock: FrozenClock, job_that_takes: JobThatTakes
) -> None:
    policy = RetryPolicy(max_attempts=10, first_delay=10 * MINUTE, back_off="constant")
    job = job_that_takes(15 * MINUTE, timeout=12 * MINUTE, run_timeout=HOUR, retry=policy)
    handle = await job.submit()

    for _ in range(3):
        await run_until_idle(frozen_app)
        await clock.advance(10 * MINUTE)

    # 0–15 (told at 12), 25–40, 50–65: the third attempt has only ten minutes left.
    run = await handle.find()
    assert (run.state, outcomes(run)) == (State.DEAD, ["timed_out"] * 3)
    errors = [attempt.error["code"] for attempt in run.attempts if attempt.error]
    assert errors == ["attempt-timed-out", "attempt-timed-out", "run-timed-out"]


async def test_no_attempt_is_planned_beyond_the_time_of_the_run(frozen_app: Mainspring) -> None:
    policy = RetryPolicy(first_delay=2 * HOUR, cap=2 * HOUR)
    handle = await job_that(frozen_app, ValueError(), retry=policy, run_timeout=HOUR).submit()

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, outcomes(run)) == (State.DEAD, ["failed"])


async def test_a_run_cannot_snooze_beyond_its_time(frozen_app: Mainspring) -> None:
    handle = await job_that(frozen_app, Snooze(for_=50 * MINUTE), run_timeout=HOUR).submit()

    await run_until_idle(frozen_app, travel=True)

    run = await handle.find()
    assert (run.state, outcomes(run), run.attempts_spent) == (State.DEAD, ["snoozed", "timed_out"], 0)


async def test_a_run_whose_time_is_up_while_it_waits_is_not_tried_again(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    handle = await job_that(frozen_app, ValueError(), "done", run_timeout=HOUR).submit()
    await run_until_idle(frozen_app)
    await clock.advance(2 * HOUR)  # nobody was there to take it

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert (run.state, outcomes(run), run.attempts_spent) == (State.DEAD, ["failed", "timed_out"], 1)
    assert run.attempts[-1].number == 0
    assert await is_sound(connection, handle)


# ── time to start ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_did_not_start_in_time_expires(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    handle = await job_that(frozen_app, "done", start_within=MINUTE).submit()
    await clock.advance(MINUTE - timedelta(microseconds=1))
    await expire_everything(connection)
    assert (await handle.find()).state is State.READY

    await clock.advance(timedelta(microseconds=1))
    await expire_everything(connection)

    assert (await handle.find()).state is State.EXPIRED
    with pytest.raises(RunExpired):
        await handle.result()


async def test_a_worker_does_not_start_what_is_too_late(frozen_app: Mainspring, clock: FrozenClock) -> None:
    handle = await job_that(frozen_app, "done", start_within=60).submit()
    await clock.advance(MINUTE)

    await run_until_idle(frozen_app)

    assert outcomes(await handle.find()) == ["expired"]


@pytest.mark.parametrize("again", [ValueError("once"), Retry(after=2 * HOUR), Snooze(for_=2 * HOUR)])
async def test_a_run_that_started_in_time_has_all_the_time_for_its_next_attempt(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, again: Exception
) -> None:
    handle = await job_that(frozen_app, again, "done", start_within=MINUTE).submit()
    await run_until_idle(frozen_app)
    assert (await handle.find()).expires_at is None

    await clock.advance(3 * HOUR)
    await expire_everything(connection)
    await run_until_idle(frozen_app)

    assert await handle.result() == "done"


async def test_a_run_that_lost_its_worker_has_all_the_time_to_start_again(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    handle = await job_that(frozen_app, "done", start_within=MINUTE).submit()
    lane, worker_id = lane_of(handle.id), await registered_worker(connection)
    claimed = await leases.claim(
        connection,
        lane=lane,
        line=(await jobs.lines_of(connection, tenant_id=DEFAULT_TENANT))["default"],
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=1,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert [row["id"] for row in claimed] == [handle.id]
    assert (await workers.rescue(connection, lane, worker_id, 10)).rescued == 1

    await clock.advance(HOUR)
    await expire_everything(connection)
    await run_until_idle(frozen_app)

    assert await handle.result() == "done"


async def test_the_time_to_start_begins_when_a_run_is_due(frozen_app: Mainspring, clock: FrozenClock) -> None:
    handle = await job_that(frozen_app, "done", start_within=MINUTE).options(delay=HOUR).submit()

    assert (await handle.find()).expires_at == clock.at + HOUR + MINUTE


# ── overrides ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_may_have_its_own_policies(frozen_app: Mainspring, clock: FrozenClock) -> None:
    job = job_that(frozen_app, ValueError(), retry=RetryPolicy(max_attempts=1))
    own = RetryPolicy(max_attempts=3, back_off="constant", first_delay=MINUTE, retry_on=(ValueError,))
    plain, special = await job.submit(), await job.options(retry=own).submit()

    await run_until_idle(frozen_app, travel=True)

    assert [outcomes(await handle.find()) for handle in (plain, special)] == [["failed"], ["failed"] * 3]
    assert clock.at - (await special.find()).submitted_at == 2 * MINUTE


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"timeout": MINUTE}, {"timeout": "PT60S"}),
        ({"timeout": 1.5}, {"timeout": "PT1.5S"}),
        ({"run_timeout": 60}, {"run_timeout": "PT60S"}),
    ],
)
async def test_the_timeouts_of_a_run_are_shown_and_kept_wherever_it_goes(
    frozen_app: Mainspring, job_that_takes: JobThatTakes, options: dict[str, Any], shown: dict[str, Any]
) -> None:
    job = job_that_takes(HOUR, retry=RetryPolicy(max_attempts=2))
    handle = await job.options(**options).submit()
    assert (await handle.find()).overrides == shown

    await run_until_idle(frozen_app)

    run = await handle.find()
    assert run.overrides == shown
    assert outcomes(run) == ["timed_out"]


async def test_start_within_and_maximum_age_of_a_run_are_shown_as_instants(
    frozen_app: Mainspring, clock: FrozenClock
) -> None:
    job = job_that(frozen_app, "done", start_within=HOUR, max_age=HOUR)
    run = await (await job.options(start_within=MINUTE, max_age=2 * HOUR).submit()).find()

    assert (run.expires_at, run.retry_until) == (clock.at + MINUTE, clock.at + 2 * HOUR)


async def test_policies_are_part_of_what_a_key_stands_for(frozen_app: Mainspring) -> None:
    job = job_that(frozen_app, "done")
    policies: list[dict[str, Any]] = [
        {},
        {"timeout": 5},
        {"timeout": 6},
        {"run_timeout": 5},
        {"start_within": 5},
        {"retry": RetryPolicy(max_attempts=2)},
    ]
    for index, first in enumerate(policies):
        kept = await job.options(key=str(index), **first).submit()
        assert (await job.options(key=str(index), **first).submit()).id == kept.id
        for other in policies:
            if other != first:
                with pytest.raises(IdempotencyConflict):
                    await job.options(key=str(index), **other).submit()


async def test_policies_that_someone_spoilt_make_a_dead_letter_and_spare_the_worker(
    frozen_app: Mainspring, connection: Connection
) -> None:
    job = job_that(frozen_app, "done")
    spoilt, neighbour = await job.options(timeout=5).submit(), await job.submit()
    await connection.execute("""update ready set overrides = '{"timeout": "soon"}' where id = $1""", spoilt.id)

    await run_until_idle(frozen_app)

    assert await neighbour.result() == "done"
    run = await spoilt.find()
    assert (run.state, outcomes(run), run.attempts_spent) == (State.DEAD, ["failed"], 0)


@pytest.mark.parametrize("name", ["timeout", "run_timeout", "start_within", "max_age", "retry"])
@pytest.mark.parametrize("value", [0, -1, "soon", float("nan"), True, timedelta(0), timedelta(days=4_000)])
async def test_definitions_and_overrides_are_refused_in_the_same_words(
    frozen_app: Mainspring, name: str, value: Any
) -> None:
    def refusal(define: Callable[..., Any]) -> InvalidInput:
        with pytest.raises(InvalidInput) as caught:
            define(**{name: value})
        return caught.value

    job = job_that(frozen_app, "done")
    at_definition = refusal(lambda **options: frozen_app.job(name="another", **options)(datetime.now))
    for_a_run = refusal(job.options)

    assert str(at_definition) == str(for_a_run)
    assert at_definition.code == for_a_run.code == f"invalid-{name.replace('_', '-')}"
    assert at_definition.fields == for_a_run.fields


# ── what a claim tells a worker about them ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("crashes", "first_started_at", "overrides", "special"),
    [
        (0, None, None, PLAIN),
        (2, None, None, Special(crashes=2)),
        (0, datetime(2026, 3, 29, 1, 59, 59, 123457, UTC), None, Special(first_started_at=1_774_749_599_123_457)),
        (0, datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), None, Special(first_started_at=-1)),
        (0, None, '{"timeout": "PT60S"}', Special(overrides=Overrides(timeout=MINUTE))),
    ],
)
async def test_a_claim_says_in_one_value_what_sets_a_run_apart(
    connection: Connection,
    crashes: int,
    first_started_at: datetime | None,
    overrides: str | None,
    special: Special,
) -> None:
    await connection.execute("set timezone = 'Europe/Berlin'")
    text = await connection.fetchval(
        "select special_of($1::smallint, $2, $3::jsonb)", crashes, first_started_at, overrides
    )

    assert special_of(text) == special
