"""Schedules that keep their runs apart: what an instant does while an earlier run has not ended, and who lets it go."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from tests.lifecycle import verbs
from tests.lifecycle.verbs import Party, Subject
from tests.occurrences import NOTHING_WRONG, instants, verdict

from mainspring import Limit, Mainspring, State
from mainspring.errors import InvalidSchedule
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.model.admission import Gate
from mainspring.model.line import Delivery
from mainspring.store import limits
from mainspring.testing import run_until_idle

from .scheduling import HOUR, LANES, MINUTE, NEW_YEAR, Firing, outcomes, remind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

HOURLY = "0 * * * *"


@pytest.fixture
def firing(connection: Connection, clock: FrozenClock) -> Firing:
    return Firing(connection, clock)


@pytest.fixture
async def party(database: Database) -> AsyncIterator[Party]:
    party = await Party.arrives(database)
    yield party
    await party.leaves()


class Hours:
    """An hourly schedule, and what becomes of its instants."""

    def __init__(self, app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection) -> None:
        self._app = app
        self._clock = clock
        self._firing = firing
        self._connection = connection

    async def make(self, overlap: str, **settings: Any) -> None:
        await remind(self._app).scheduled("hourly", HOURLY, overlap=overlap, **settings).create(1)

    async def pass_by(self, hours: int = 1) -> None:
        """So many hours go by, and schedulers fire at each of them."""
        for _ in range(hours):
            await self._clock.advance(HOUR)
            await self._firing.fire()

    async def became(self) -> list[str]:
        """What the instants became, oldest first."""
        return [said for _, _, said in await outcomes(self._app, "hourly")]

    async def states(self) -> list[State]:
        """Of its runs, oldest first."""
        records = reversed(await self._app.schedules.history("hourly"))
        return [record.run_state for record in records if record.run_state is not None]

    async def release(self) -> None:
        """As the keeper does."""
        keeper = Gatekeeper(lanes=LANES, clock=self._clock)
        while await keeper.step(self._connection) == 0.0:
            pass

    async def subject(self) -> Subject:
        """The run that is in line."""
        row = await self._connection.fetchrow("select id, job_id, line_id from ready")
        assert row is not None
        return Subject(row["id"], row["job_id"], row["line_id"], uuid4(), uuid4())


@pytest.fixture
def hours(frozen_app: Mainspring, clock: FrozenClock, firing: Firing, connection: Connection) -> Hours:
    return Hours(frozen_app, clock, firing, connection)


# ── the rules ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_by_default_runs_may_execute_side_by_side(hours: Hours, connection: Connection) -> None:
    await hours.make("allow")
    await hours.pass_by(3)

    assert await hours.became() == ["fired"] * 3
    assert await connection.fetchval("select count(*) from schedule_run") == 0, "nobody asks when they end"


async def test_skip_makes_no_run_while_an_earlier_one_has_not_ended(frozen_app: Mainspring, hours: Hours) -> None:
    await hours.make("skip")
    await hours.pass_by(3)
    assert await hours.became() == ["fired", "overlap", "overlap"]

    await run_until_idle(frozen_app)
    await hours.pass_by(2)
    assert await hours.became() == ["fired", "overlap", "overlap", "fired", "overlap"]


async def test_buffer_one_lets_one_wait_and_skips_further_ones(frozen_app: Mainspring, hours: Hours) -> None:
    await hours.make("buffer_one")
    await hours.pass_by(4)
    assert await hours.became() == ["fired", "fired", "overlap", "overlap"]
    assert await hours.states() == [State.READY, State.HELD]

    await run_until_idle(frozen_app)
    assert await hours.states() == [State.SUCCEEDED] * 2
    await hours.pass_by()
    assert (await hours.became())[-1] == "fired"


async def test_buffer_all_executes_one_after_the_other_in_order(
    frozen_app: Mainspring, hours: Hours, connection: Connection, party: Party
) -> None:
    await hours.make("buffer_all")
    await hours.pass_by(4)
    assert await hours.states() == [State.READY, *[State.HELD] * 3]

    for number in range(4):
        await hours.release()
        assert (await hours.states())[number] is State.READY
        assert await connection.fetchval("select count(*) from ready") == 1
        subject = await hours.subject()
        await verbs.claim(party, subject, None)
        await verbs.complete(party, subject, None)
    assert await hours.states() == [State.SUCCEEDED] * 4
    assert await connection.fetchval("select count(*) from schedule_run") == 0


async def test_cancel_other_ends_a_waiting_run_and_takes_its_place_at_once(
    frozen_app: Mainspring, hours: Hours, connection: Connection
) -> None:
    await hours.make("cancel_other")
    await hours.pass_by(3)

    assert await hours.states() == [State.CANCELLED, State.CANCELLED, State.READY]
    first = (await frozen_app.schedules.history("hourly"))[-1].run_id
    audited = await connection.fetch("select actor from audit where action = 'run.cancel' and subject = $1", str(first))
    assert [row["actor"] for row in audited] == ["schedule hourly"]


async def test_cancel_other_asks_a_running_run_to_stop_and_waits_for_its_end(
    hours: Hours, connection: Connection, party: Party
) -> None:
    await hours.make("cancel_other")
    await hours.pass_by()
    subject = await hours.subject()
    await verbs.claim(party, subject, None)
    await hours.pass_by()
    assert await hours.states() == [State.RUNNING, State.HELD]
    assert await connection.fetchval("select bit_count(cancel) from lease") == 1

    await hours.pass_by()
    assert await hours.states() == [State.RUNNING, State.CANCELLED, State.HELD], "who waits makes room for the next"
    await verbs.obey(party, subject, None)
    await hours.release()
    assert await hours.states() == [State.CANCELLED, State.CANCELLED, State.READY]


async def test_a_worker_stops_what_the_next_run_cancels_and_starts_that(app: Mainspring) -> None:
    """With processes as they are: who ends a run lets the next one go."""
    started: list[int] = []
    ended = asyncio.Event()

    @app.job(schedule="every second", overlap="cancel_other")
    async def tick() -> None:
        started.append(len(started))
        if len(started) == 1:
            await asyncio.Event().wait()
        ended.set()

    async with app.running(scheduler=True):
        await ended.wait()
    assert len(started) >= 2


# ── what has not ended, and what has ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", ["", "retry", "give_back", "hold", "rescue", "snooze"])
async def test_nothing_fires_while_the_earlier_run_is_anywhere_but_at_its_end(
    hours: Hours, party: Party, way: str
) -> None:
    await hours.make("skip")
    await hours.pass_by()
    subject = await hours.subject()
    await go(party, subject, ("claim", *way.split()))
    await hours.pass_by()

    assert await hours.became() == ["fired", "overlap"]


ENDS = {
    "succeeds": ("claim", "complete"),
    "is buried": ("claim", "bury"),
    "retries and succeeds": ("claim", "retry", "promote", "claim", "complete"),
    "is rescued and succeeds": ("claim", "rescue", "claim", "complete"),
    "is cancelled in line": ("cancel",),
    "is cancelled while it backs off": ("claim", "retry", "cancel"),
    "is cancelled while it runs": ("claim", "cancel", "obey"),
    "is cancelled and its worker lost": ("claim", "cancel", "rescue"),
    "expires in line": ("expire",),
    "is lost": ("claim", "lose"),
    "is buried and purged": ("claim", "bury", "purge"),
    "is requeued and succeeds": ("claim", "bury", "requeue", "claim", "complete"),
}


async def go(party: Party, subject: Subject, way: tuple[str, ...]) -> None:
    for verb in way:
        await (verbs.VERBS | {"obey": verbs.obey})[verb](party, subject, None)


@pytest.mark.parametrize("way", ENDS)
@pytest.mark.parametrize("rule", ["skip", "buffer_all"])
async def test_every_way_to_an_end_lets_the_next_one_go(
    frozen_app: Mainspring, hours: Hours, connection: Connection, party: Party, clock: FrozenClock, rule: str, way: str
) -> None:
    job = remind(frozen_app).options(max_age=2 * HOUR)
    await job.scheduled("hourly", HOURLY, overlap=rule).create(1)
    await hours.pass_by(2)
    subject = await hours.subject()
    if way == "expires in line":
        await connection.execute("update ready set expires_at = mainspring.clock_now()")
    await go(party, subject, ENDS[way])
    if rule == "skip":
        await hours.pass_by()
        assert await hours.became() == ["fired", "overlap", "fired"]
    else:
        await hours.release()
        assert (await hours.states())[1] is State.READY
    left = await connection.fetchval("select count(*) from schedule_run where not is_dead")
    assert left == 1, "the one that goes on"


async def test_a_transactional_run_lets_the_next_one_go(app: Mainspring, connection: Connection, party: Party) -> None:
    @app.job(name="remind", delivery=Delivery.TRANSACTIONAL)
    async def job(customer: int = 0) -> None: ...

    await job.scheduled("hourly", HOURLY, overlap="skip").create(1)
    firing = Firing(connection, app.clock)  # type: ignore[arg-type]  # the clock is as it is
    await connection.execute("update cursor set due_at = now(), nominal_at = now()")
    await firing.fire()
    row = await connection.fetchrow("select id, job_id, line_id from ready")
    subject = Subject(row["id"], row["job_id"], row["line_id"], uuid4(), uuid4())
    await verbs.claim(party, subject, None)
    (last,) = subject.claims
    await connection.execute(
        "select mainspring.finish_run($1, 1, $2, $3, 0, $4, now(), 'null')",
        subject.run_id,
        subject.lane,
        last.lease.id,
        last.worker_id,
    )

    assert await connection.fetchval("select count(*) from schedule_run") == 0


async def test_the_leases_of_plain_runs_are_completed_without_a_word_more(
    frozen_app: Mainspring, hours: Hours, party: Party
) -> None:
    """And those of schedules with a rule say so themselves, whatever became of the schedule since."""
    await hours.make("allow")
    await hours.pass_by()
    subject = await hours.subject()
    await verbs.claim(party, subject, None)
    assert subject.claims[-1].row["special"] is None

    await frozen_app.schedules.update("hourly", overlap="skip")
    await hours.pass_by()
    subject = await hours.subject()
    await verbs.claim(party, subject, None)
    assert subject.claims[-1].work(verbs.PATIENT, is_started=True).is_special


# ── in company ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "became"),
    [
        ("skip", ["fired", "overlap", "overlap"]),
        ("buffer_one", ["fired", "fired", "overlap"]),
        ("buffer_all", ["fired", "fired", "fired"]),
        ("cancel_other", ["fired", "fired", "fired"]),
    ],
)
async def test_what_is_caught_up_with_keeps_to_the_rule(
    clock: FrozenClock, firing: Firing, hours: Hours, rule: str, became: list[str]
) -> None:
    await hours.make(rule, catch_up="all")
    await clock.advance(3 * HOUR + 2 * MINUTE)
    await firing.fire()

    assert await hours.became() == became


async def test_what_was_collapsed_into_a_skipped_instant_is_skipped_for_the_same_reason(
    clock: FrozenClock, firing: Firing, hours: Hours, connection: Connection
) -> None:
    await hours.make("skip")
    await hours.pass_by()
    await clock.advance(3 * HOUR + 2 * MINUTE)
    await firing.fire()

    assert await hours.became() == ["fired", "overlap", "overlap"]
    expected = {"hourly": instants(HOURLY, after=NEW_YEAR, until=clock.at)}
    assert await verdict(connection, expected) == NOTHING_WRONG


async def test_nothing_is_decided_ahead_of_its_instant(clock: FrozenClock, firing: Firing, hours: Hours) -> None:
    await hours.make("skip")
    await clock.advance(HOUR - timedelta(seconds=1))
    assert await firing.fire(horizon=60) == 0

    await clock.advance(timedelta(seconds=1))
    assert await firing.fire(horizon=60) == 1


async def test_the_database_carries_out_nothing_ahead_of_its_instant(
    clock: FrozenClock, firing: Firing, hours: Hours, connection: Connection
) -> None:
    """A program of before would stage it."""
    await hours.make("skip")
    await clock.advance(HOUR - timedelta(seconds=1))
    await connection.execute("update cursor set at_instant = false")
    await firing.carry_out(await firing.decided(horizon=60))

    assert await connection.fetchval("select count(*) from ready") == 0


async def test_the_rule_changes_with_the_schedule(frozen_app: Mainspring, hours: Hours, clock: FrozenClock) -> None:
    await hours.make("skip")
    await hours.pass_by(2)
    await frozen_app.schedules.update("hourly", overlap="allow")
    await hours.pass_by()
    await frozen_app.schedules.update("hourly", overlap="buffer_one")
    await hours.pass_by()

    assert await hours.became() == ["fired", "overlap", "fired", "fired"]
    assert await hours.states() == [State.READY, State.READY, State.HELD], "those of the days of allow do not count"


async def test_who_waits_has_fired_and_stays_when_the_schedule_goes(
    frozen_app: Mainspring, hours: Hours, connection: Connection
) -> None:
    await hours.make("buffer_all")
    await hours.pass_by(3)
    await frozen_app.schedules.delete("hourly")
    assert await connection.fetchval("select count(*) from held") == 2

    assert (await run_until_idle(frozen_app)).total() == 3


async def test_a_pause_takes_nobody_back_who_waits(frozen_app: Mainspring, hours: Hours) -> None:
    await hours.make("buffer_all")
    await hours.pass_by(2)
    await frozen_app.schedules.pause("hourly")

    assert await hours.states() == [State.READY, State.HELD]


async def test_triggered_runs_backfills_and_reruns_stand_beside_the_rule(
    frozen_app: Mainspring, hours: Hours, connection: Connection
) -> None:
    """A person asked for them."""
    await hours.make("skip")
    await hours.pass_by(2)
    await frozen_app.schedules.trigger("hourly")
    await frozen_app.schedules.backfill("hourly", since=NEW_YEAR)

    assert await connection.fetchval("select count(*) from ready") == 3
    assert await connection.fetchval("select count(*) from schedule_run") == 1


async def test_a_run_that_waits_for_an_earlier_one_may_also_be_under_a_limit(
    frozen_app: Mainspring, clock: FrozenClock, firing: Firing, hours: Hours
) -> None:
    @frozen_app.job(name="remind", limit=Limit(1))
    async def job(customer: int = 0) -> None: ...

    await job.scheduled("hourly", HOURLY, overlap="buffer_all").create(1)
    await job.scheduled("other", HOURLY, overlap="buffer_all").create(2)
    await hours.pass_by(3)

    assert (await run_until_idle(frozen_app))["succeeded"] == 6  # type: ignore[index]  # an outcome is a word
    assert await hours.states() == [State.SUCCEEDED] * 3


async def test_a_changed_run_still_waits_for_the_earlier_one(frozen_app: Mainspring, hours: Hours) -> None:
    await hours.make("buffer_all")
    await hours.pass_by(2)
    waiting = (await frozen_app.schedules.history("hourly"))[0].run_id
    assert waiting is not None
    await frozen_app.runs.change(waiting, priority=0, arguments={"customer": 7})
    await hours.release()

    assert await hours.states() == [State.READY, State.HELD]


async def test_a_requeued_dead_letter_is_waited_for_again(hours: Hours, party: Party) -> None:
    await hours.make("skip")
    await hours.pass_by()
    subject = await hours.subject()
    await go(party, subject, ("claim", "bury", "requeue"))
    await hours.pass_by()

    assert await hours.became() == ["fired", "overlap"]


async def test_explain_names_the_earlier_run(frozen_app: Mainspring, hours: Hours) -> None:
    await hours.make("buffer_all")
    await hours.pass_by(3)
    third, _, first = [record.run_id for record in await frozen_app.schedules.history("hourly")]
    assert third is not None
    found = await frozen_app.runs.explain(third)

    assert found.gate is Gate.OVERLAP
    assert found.says == f"it waits for the earlier run {first} of its schedule; 1 comes before it"
    assert found.remedy == f"mainspring run explain {first}"


@pytest.mark.parametrize("given", ["sometimes", 3, True])
async def test_another_word_is_refused(frozen_app: Mainspring, given: Any) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        remind(frozen_app).scheduled("hourly", HOURLY, overlap=given).request(1)

    assert refused.value.code == "invalid-overlap"
    assert "must be one of allow, skip, buffer_one, buffer_all, cancel_other" in refused.value.message


async def test_a_schedule_says_its_rules(frozen_app: Mainspring) -> None:
    made = await remind(frozen_app).scheduled("a", HOURLY, overlap="skip", pause_after_failures=3).create(1)
    assert (made.overlap, made.pause_after_failures) == ("skip", 3)

    changed = await frozen_app.schedules.update("a", pause_after_failures=None)
    assert (changed.version, changed.overlap, changed.pause_after_failures) == (2, "skip", None)
    same = await frozen_app.schedules.update("a", overlap="skip")
    assert same.version == 2
    assert [each.pause_after_failures for each in await frozen_app.schedules.versions("a")] == [None, 3]


async def test_many_schedules_are_made_with_their_rules(frozen_app: Mainspring, connection: Connection) -> None:
    job = remind(frozen_app)
    rules: list[dict[str, Any]] = [{}, {"overlap": "skip"}, {"pause_after_failures": 2}]
    made = [job.scheduled(f"s{n}", HOURLY, **rule).request(n) for n, rule in enumerate(rules)]
    await frozen_app.schedules.create_many(made)
    found = [await frozen_app.schedules.find(f"s{n}") for n in range(3)]
    assert [each.overlap for each in found] == ["allow", "skip", "allow"]
    assert [each.pause_after_failures for each in found] == [None, None, 2]
    assert await connection.fetchval("select count(*) from cursor where at_instant") == 2


# ── rows, and nothing that counts ───────────────────────────────────────────────────────────────────────────────


async def test_a_row_that_a_worker_of_before_left_behind_is_forgotten(
    frozen_app: Mainspring, hours: Hours, connection: Connection, clock: FrozenClock
) -> None:
    await hours.make("skip")
    await hours.pass_by()
    await connection.execute("delete from ready")
    await clock.advance(MINUTE)
    lane = await connection.fetchval("select lane from schedule_run")

    assert len(await limits.forget_ended(connection, lane)) == 1
    assert await limits.forget_ended(connection, lane) == []


@pytest.mark.parametrize("way", ["", "claim", "claim retry", "claim hold", "claim bury"])
async def test_nobody_is_forgotten_who_has_not_ended(
    hours: Hours, connection: Connection, clock: FrozenClock, party: Party, way: str
) -> None:
    await hours.make("skip")
    await hours.pass_by()
    subject = await hours.subject()
    await go(party, subject, tuple(way.split()))
    await clock.advance(MINUTE)

    assert await limits.forget_ended(connection, subject.lane) == []


# ── in code ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_code_says_of_overlap_is_compared_and_applied(url: str, clock: FrozenClock) -> None:
    def starting(**rules: Any) -> Mainspring:
        app = Mainspring(url, clock=clock)
        decorate: Any = app.job

        async def sync() -> None: ...

        decorate(schedule=HOURLY, **rules)(sync)
        return app

    async with starting() as before, starting(overlap="skip", pause_after_failures=3) as after:
        await before.schedules.apply()
        (difference,) = await after.schedules.apply()
        assert [(each.what, each.before, each.after) for each in difference.changes] == [
            ("overlap", "allow", "skip"),
            ("pause after failures", "never", "3"),
        ]
        found = await after.schedules.find("sync")
        assert (found.version, found.overlap, found.pause_after_failures) == (2, "skip", 3)
