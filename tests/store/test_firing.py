"""Schedules fire: each occurrence becomes one run, and what does not fire says why."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from tests.occurrences import NOTHING_WRONG, Instant, fired, instants, verdict
from tests.registering import registered_worker

from mainspring import CatchUp, Context, Mainspring, State
from mainspring.scheduler.horizon import CALM, Horizon
from mainspring.scheduler.scheduler import LaneAssignment, SchedulerIdentity
from mainspring.store import leases, schedule_firing
from mainspring.store.functions import all_functions
from mainspring.testing import run_until_idle

from .scheduling import (
    DAY,
    DROP_COMPARISON,
    HOUR,
    LANES,
    MINUTE,
    NEW_YEAR,
    Firing,
    remind,
    replace_in_function,
    run_ids,
)

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


@pytest.mark.invariant(2)
async def test_an_occurrence_becomes_one_run(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> None:
    made = await remind(frozen_app).scheduled("remind-42", "every day at 09:00").create(42)
    assert made.next_at == NEW_YEAR + 9 * HOUR
    assert await firing.fire() == 0

    await clock.advance(9 * HOUR)
    assert await firing.fire() == 1
    assert await firing.fire() == 0
    (run_id,) = await run_ids(frozen_app)
    run = await frozen_app.runs.find(run_id)
    assert run.payload == {"customer": 42}
    assert run.due_at == NEW_YEAR + 9 * HOUR
    assert run.submitted_by == "schedule remind-42"
    (record,) = await frozen_app.schedules.history("remind-42")
    assert (record.nominal_at, record.run_id, record.late) == (NEW_YEAR + 9 * HOUR, run_id, timedelta(0))
    assert (await frozen_app.schedules.find("remind-42")).next_at == NEW_YEAR + DAY + 9 * HOUR


async def test_a_handler_knows_its_occurrence(frozen_app: Mainspring, clock: FrozenClock, firing: Firing) -> None:
    seen = []

    @frozen_app.job
    async def report(context: Context) -> None:
        seen.append(context.occurrence)

    await report.scheduled("daily", "every day at 09:00").create()
    await clock.advance(9 * HOUR)
    await firing.fire()
    await clock.advance(HOUR)
    await run_until_idle(frozen_app)
    (occurrence,) = seen
    assert occurrence is not None
    assert (occurrence.schedule, occurrence.version) == ("daily", 1)
    assert occurrence.interval == (NEW_YEAR - 15 * HOUR, NEW_YEAR + 9 * HOUR)


async def test_options_and_tags_of_a_schedule_are_those_of_its_runs(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    job = remind(frozen_app).options(priority=2, tags=["vip"], max_age=60, timeout=5, headers={"origin": "test"})
    await job.scheduled("vip", "every hour").create(1)
    await clock.advance(HOUR)
    await firing.fire()
    (run_id,) = await run_ids(frozen_app)
    run = await frozen_app.runs.find(run_id)
    assert (run.priority, run.tags) == (2, ["vip"])
    assert run.expires_at == NEW_YEAR + HOUR + MINUTE
    assert run.overrides["timeout"]
    assert run.headers["origin"] == "test"


# ── ahead of time ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_staged_run_waits_for_its_instant(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection
) -> None:
    await remind(frozen_app).scheduled("hourly", "every hour").create(1)
    await clock.advance(HOUR - timedelta(seconds=2))
    assert await firing.fire(horizon=1.9) == 0
    assert await firing.fire(horizon=2.0) == 1
    (run_id,) = await run_ids(frozen_app)
    assert (await frozen_app.runs.find(run_id)).state is State.SCHEDULED
    assert [run.state for run in (await frozen_app.runs.list(state="scheduled")).runs] == [State.SCHEDULED]
    assert (await frozen_app.runs.list(state="ready")).runs == []
    assert (await frozen_app.jobs.find("remind")).counts[State.READY] == 0
    assert [queue.depth for queue in await frozen_app.queues.list()] == [0]
    await run_until_idle(frozen_app)
    assert (await frozen_app.runs.find(run_id)).attempts == []

    await clock.advance(2)
    assert (await frozen_app.runs.find(run_id)).state is State.READY
    await run_until_idle(frozen_app)
    (attempt,) = (await frozen_app.runs.find(run_id)).attempts
    assert attempt.ready_at == NEW_YEAR + HOUR


async def test_nothing_is_staged_while_a_worker_lives_that_would_start_it_early(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    """One that began before there were schedules takes whatever is in line, as the control shows."""
    identity = SchedulerIdentity(id=uuid4(), lanes=LANES, clock=clock, version="")
    assignment, horizons = LaneAssignment(identity), []
    await assignment.observe(connection)
    horizons.append(assignment.horizon)
    old_worker = await registered_worker(connection)
    await connection.execute("update worker set waits_for_rank = false")
    await assignment.observe(connection)
    horizons.append(assignment.horizon)

    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR - timedelta(seconds=2))
    assert await firing.fire(horizon=assignment.horizon) == 0
    await firing.fire(horizon=CALM)
    lane, line = await connection.fetchrow("select lane, line_id from ready")
    claim = {"lane": lane, "line": line, "priorities": [5], "fronts": [0], "count": 1, "lease": uuid4()}
    bound = "and ready.rank <= rank_bound()"
    assert bound in all_functions()["claim_runs"]
    await connection.execute(all_functions()["claim_runs"].replace(bound, ""))
    early = await leases.CLAIM.fetch(connection, **claim, worker=old_worker, jobs_in_threads=[], threads=0)
    assert len(early) == 1, "the control"

    await connection.execute("update worker set state = 'lost', ended_at = clock_now()")
    await assignment.observe(connection)
    assert [*horizons, assignment.horizon] == [CALM, 0.0, CALM]


async def test_the_horizon_sees_a_herd_that_is_a_minute_away(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    """Each lane announces what is due in it; the horizon reaches there if this scheduler would be late otherwise."""
    job = remind(frozen_app)
    for number in range(40):
        await job.scheduled(f"herd-{number}", "0 * * * *").create(number)
    await clock.advance(59 * MINUTE + timedelta(seconds=10))
    announced = [await schedule_firing.announced(connection, lane, (30.0, 60.0), most=100) for lane in range(LANES)]
    assert sum(each[30.0] for each in announced) == 0
    assert sum(each[60.0] for each in announced) == 40

    fullest = max(range(LANES), key=lambda lane: announced[lane][60.0])
    assert await Horizon().seconds(connection, [fullest]) == CALM
    assert await Horizon(rate=0.1).seconds(connection, [fullest]) == 60.0
    assert await Horizon(rate=0.1).seconds(connection, []) == CALM


# ── downtime ────────────────────────────────────────────────────────────────────────────────────────────────────


# How often a schedule fires, how long nobody is there, and how far back is caught up: what is at most a minute late is
# on time, and fires whatever the rule.
DOWNTIMES = {
    "a minute": ("*/10 * * * * *", MINUTE, timedelta(seconds=30)),
    "an hour": ("* * * * *", HOUR + MINUTE / 2, HOUR / 2),
    "a day": ("0 * * * *", DAY + HOUR / 2, 3 * HOUR),
    "a month": ("0 * * * *", 30 * DAY + HOUR / 2, 3 * HOUR),
}
RULES = ["latest", "earliest", "all", "none"]


async def go_down(
    app: Mainspring, clock: FrozenClock, firing: Firing, down: str, rule: str
) -> tuple[datetime, list[datetime]]:
    """A schedule fires once on time, and then nobody is there for a while; answers with that instant, and all since."""
    when, absence, window = DOWNTIMES[down]
    catch_up = CatchUp(rule=rule, window=window)  # type: ignore[arg-type]
    made = await remind(app).scheduled("often", when, catch_up=catch_up).create(1)
    assert made.next_at is not None
    await clock.set(made.next_at)
    await firing.fire()
    await clock.advance(absence)
    return made.next_at, instants(when, after=made.next_at, until=clock.at)


@pytest.mark.parametrize("down", DOWNTIMES)
@pytest.mark.parametrize("rule", RULES)
async def test_every_instant_of_a_downtime_has_one_outcome(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, rule: str, down: str
) -> None:
    on_time, missed = await go_down(frozen_app, clock, firing, down, rule)
    await firing.fire()

    recent = [at for at in missed if at >= clock.at - DOWNTIMES[down][2]]
    by_the_rule = {"latest": recent[-1:], "earliest": recent[:1], "all": recent, "none": []}[rule]
    wanted = missed if clock.at - missed[0] <= MINUTE else by_the_rule
    assert await fired(connection) == {"often": [on_time, *wanted]}
    assert await verdict(connection, {"often": [on_time, *missed]}) == NOTHING_WRONG
    assert (await frozen_app.schedules.find("often")).next_at == missed[-1] + (missed[-1] - missed[-2])


@pytest.mark.parametrize("down", DOWNTIMES)
async def test_a_scheduler_that_began_with_the_present_would_forget_a_downtime(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing, down: str
) -> None:
    """The control: one that keeps in its memory what comes next."""
    on_time, missed = await go_down(frozen_app, clock, firing, down, "all")
    following = missed[-1] + (missed[-1] - missed[-2])
    await connection.execute("update cursor set nominal_at = $1, due_at = $1", following)
    await clock.set(following)
    await firing.fire()
    found = await verdict(connection, {"often": [on_time, *missed, following]})
    assert found.missing == [Instant("often", at) for at in missed]


async def test_a_schedule_ends_with_its_last_instant(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing
) -> None:
    await remind(frozen_app).scheduled("once", "2031-01-01T01:00:00Z").create(1)
    await clock.advance(HOUR)
    assert await firing.fire() == 1
    found = await frozen_app.schedules.find("once")
    assert (found.state, found.next_at) == ("done", None)


# ── once, whoever fires ─────────────────────────────────────────────────────────────────────────────────────────


async def fired_twice(connection: Connection, clock: FrozenClock, app: Mainspring) -> int:
    """Two schedulers read the same cursors; then each has its decision carried out. Answers how many runs there are."""
    first, second = Firing(connection, clock), Firing(connection, clock)
    await remind(app).scheduled("hourly", "every hour").create(1)
    await clock.advance(HOUR)
    batches = [await each.decided() for each in (first, second)]
    for each, batch in zip((first, second), batches, strict=True):
        await each.carry_out(batch)
    return len(await run_ids(app))


async def without(connection: Connection, *, comparison: bool = False, ledger: bool = False) -> None:
    """Take a guard away."""
    if comparison:
        await replace_in_function(connection, *DROP_COMPARISON)
    if ledger:
        await connection.execute("alter table mainspring.occurrence drop constraint occurrence_pkey")


@pytest.mark.invariant(2)
@pytest.mark.invariant(8)
@pytest.mark.parametrize(
    ("comparison", "ledger", "runs"),
    [(False, False, 1), (True, False, 1), (False, True, 1), (True, True, 2)],
    ids=["both guards", "without the comparison", "without the ledger's key", "without both"],
)
async def test_two_schedulers_that_decide_the_same_make_one_run(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, *, comparison: bool, ledger: bool, runs: int
) -> None:
    await without(connection, comparison=comparison, ledger=ledger)
    assert await fired_twice(connection, clock, frozen_app) == runs


# ── what cannot be decided ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_that_cannot_be_decided_is_paused_and_keeps_nobody_waiting(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, firing: Firing
) -> None:
    job = remind(frozen_app)
    for name in ("broken", "sound"):
        await job.scheduled(name, "0 * * * *").create(1)
    await connection.execute("""update schedule set spec = '{"when": "of another age"}' where name = 'broken'""")
    await clock.advance(HOUR)
    await firing.fire()
    assert len(await run_ids(frozen_app)) == 1
    state, who, why = await connection.fetchrow(
        "select state, paused_by, pause_reason from schedule where name = 'broken'"
    )
    assert (state, who) == ("paused", "scheduler")
    assert "of another age" in why
    assert await firing.fire() == 0


async def test_a_job_that_is_in_the_way_of_nobody_follows_its_newest_definition(
    frozen_app: Mainspring, url: str, clock: FrozenClock, firing: Firing
) -> None:
    """What the job says at the time of firing counts: a deploy that moves it to another queue moves its schedules."""
    await remind(frozen_app).scheduled("hourly", "0 * * * *").create(1)
    newer = Mainspring(url, clock=clock)

    @newer.job(name="remind", queue="mail", priority=1)
    async def remind_by_mail(customer: int = 0) -> None: ...

    await remind_by_mail.submit(0)
    await clock.advance(HOUR)
    await firing.fire()
    runs = [await newer.runs.find(run_id) for run_id in await run_ids(newer)]
    await newer.close()
    assert {(run.queue, run.priority) for run in runs} == {("mail", 1)}
    assert len(runs) == 2
