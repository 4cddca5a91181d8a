"""Changing a run that waits: any attribute, in any place, if nobody else changed it and no worker was quicker."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mainspring.errors import (
    InvalidArguments,
    InvalidInput,
    QueueNotFound,
    RevisionConflict,
    RunAlreadyEnded,
    RunAlreadyStarted,
    RunNotFound,
)
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import WAITING, State
from mainspring.store import jobs, notify, runs

from ..lifecycle.verbs import VERBS, Stage
from .test_cancelling import unknown_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.model.run import Run
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

OVER = [State.DEAD, State.SUCCEEDED, State.CANCELLED, State.EXPIRED]
TOMORROW = datetime.now(UTC) + timedelta(days=1)
YESTERDAY = TOMORROW - timedelta(days=2)

CHANGES: dict[str, Any] = {
    "priority": 0,
    "queue": "mail",
    "arguments": {"a": 2},
    "tags": ["urgent"],
    "at": TOMORROW,
    "max_age": timedelta(hours=1),
}


@pytest.fixture
async def stage(database: Database, app: Mainspring) -> AsyncIterator[Stage]:
    """Puts runs into any state, in the database of the test's application, which knows their job."""

    @app.job(name="on_stage")
    async def on_stage(a: int) -> int:
        return a

    stage = await Stage.opens(database)
    await jobs.open_queues(stage.observer, ["mail"], tenant_id=DEFAULT_TENANT)
    yield stage
    await stage.closes()


async def waiting(app: Mainspring, stage: Stage, state: State) -> Run:
    return await app.runs.find((await stage.set_up(state)).run_id)


async def audit_of(stage: Stage, run: Run) -> list[dict[str, Any]]:
    rows = await stage.observer.fetch(
        "select detail from audit where subject = $1 and action = 'run.change' and actor = 'tester' order by at",
        str(run.id),
    )
    return [msgspec.json.decode(row["detail"]) for row in rows]


def attribute(run: Run, name: str) -> Any:
    """What a change of that name is seen by."""
    if name == "arguments":
        return run.payload
    if name == "at":
        return run.due_at
    if name == "max_age":
        return run.expires_at and run.expires_at - run.due_at
    return getattr(run, name)


# ── what can be changed ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("state", sorted(WAITING))
async def test_an_attribute_is_changed_wherever_a_run_waits_and_the_others_stay(
    app: Mainspring, stage: Stage, state: State, name: str
) -> None:
    before = await waiting(app, stage, state)

    run = await app.runs.change(before.id, **{name: CHANGES[name]})

    assert attribute(run, name) == CHANGES[name]
    assert run.revision == before.revision + 1
    others = set(CHANGES) - {name}  # among them how long after its time a run may start, also when that is moved
    assert {each: attribute(run, each) for each in others} == {each: attribute(before, each) for each in others}
    assert (run.fence, run.attempts_spent, run.submitted_at) == (
        before.fence,
        before.attempts_spent,
        before.submitted_at,
    )


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_everything_can_be_changed_at_once(app: Mainspring, stage: Stage, state: State) -> None:
    before = await waiting(app, stage, state)
    run = await app.runs.change(before.id, **CHANGES)
    assert {name: attribute(run, name) for name in CHANGES} == CHANGES
    assert run.revision == 1


@pytest.mark.parametrize("delay", [0, 3600])
async def test_another_maximum_age_does_not_put_off_the_first_start(frozen_app: Mainspring, delay: float) -> None:
    @frozen_app.job(start_within=60, max_age=7200)
    async def call() -> None: ...

    run = await (await call.options(delay=delay).submit()).find()

    longer = await frozen_app.runs.change(run.id, max_age=9000)
    assert (longer.expires_at, longer.retry_until) == (run.expires_at, run.due_at + timedelta(seconds=9000))
    shorter = await frozen_app.runs.change(run.id, max_age=30)
    assert shorter.expires_at == shorter.retry_until == run.due_at + timedelta(seconds=30)


async def test_a_held_run_keeps_the_time_of_its_first_start_too(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.HELD)
    await stage.observer.execute("update held set expires_at = due_at + interval '1 minute' where id = $1", run.id)

    assert attribute(await app.runs.change(run.id, max_age=9000), "max_age") == timedelta(minutes=1)


@pytest.mark.invariant(11)
async def test_a_change_says_what_was_changed_and_by_whom_in_the_audit(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.READY)
    await app.runs.change(run.id, priority=1, tags=["x"])
    await app.runs.change(run.id, queue="mail")
    assert await audit_of(stage, run) == [{"changed": ["priority", "tags"]}, {"changed": ["line"]}]


async def test_tags_can_be_taken_away(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.READY)
    assert (await app.runs.change(run.id, tags=[])).tags == []


# ── a new time ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "at", "becomes"),
    [
        (State.READY, TOMORROW, State.SCHEDULED),
        (State.READY, YESTERDAY, State.READY),
        (State.SCHEDULED, TOMORROW, State.SCHEDULED),
        (State.SCHEDULED, YESTERDAY, State.READY),
        (State.HELD, YESTERDAY, State.HELD),
        (State.HELD, TOMORROW, State.HELD),
    ],
)
async def test_a_new_time_decides_where_a_run_waits(
    app: Mainspring, stage: Stage, state: State, at: datetime, becomes: State
) -> None:
    run = await waiting(app, stage, state)
    changed = await app.runs.change(run.id, at=at)
    assert (changed.state, changed.due_at) == (becomes, at)


async def test_a_held_run_that_was_put_off_is_released_when_its_time_has_come_and_not_before(
    app: Mainspring, stage: Stage
) -> None:
    """A worker that knows its job may come long before."""
    subject = await stage.set_up(State.HELD)

    for at, becomes in ((TOMORROW, State.HELD), (YESTERDAY, State.READY)):
        await app.runs.change(subject.run_id, at=at)
        await VERBS["release"](stage.first, subject, State.HELD)
        assert (await app.runs.find(subject.run_id)).state is becomes


@pytest.mark.parametrize(("at", "channel"), [(YESTERDAY, notify.READY), (TOMORROW, notify.LATER)])
async def test_whoever_has_to_act_on_the_new_time_is_woken(
    app: Mainspring, stage: Stage, connection: Connection, at: datetime, channel: str
) -> None:
    heard: list[str] = []
    await notify.listen(connection, lambda channel, payload: heard.append(channel))
    run = await waiting(app, stage, State.SCHEDULED)

    await app.runs.change(run.id, at=at)

    async with asyncio.timeout(20):
        while channel not in heard:  # it travels after the COMMIT, by itself
            await connection.fetchval("select 1")


async def test_a_run_keeps_its_place_in_the_line_when_something_else_is_changed(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.READY)
    rank = await stage.observer.fetchval("select rank from ready")
    await app.runs.change(run.id, tags=["x"])
    assert await stage.observer.fetchval("select rank from ready") == rank


# ── who was quicker ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_a_change_of_what_someone_else_changed_is_refused(app: Mainspring, stage: Stage, state: State) -> None:
    seen = await waiting(app, stage, state)
    await app.runs.change(seen.id, revision=seen.revision, priority=1)

    with pytest.raises(RevisionConflict, match="at revision 1, not 0") as refused:
        await app.runs.change(seen.id, revision=seen.revision, priority=2)

    assert (refused.value.code, refused.value.fields["revision"]) == ("revision-conflict", 1)
    assert (await app.runs.find(seen.id)).priority == 1
    assert len(await audit_of(stage, seen)) == 1


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_the_statement_itself_refuses_a_revision_that_has_passed(
    app: Mainspring, stage: Stage, state: State
) -> None:
    """Two may have looked at the same revision; only one of them changes it."""
    run = await waiting(app, stage, state)
    await app.runs.change(run.id, priority=1)
    before = await stage.contents()

    late = await runs.change(
        stage.observer,
        lane_of(run.id),
        [run.id],
        {"priority": 2},
        tenant_id=DEFAULT_TENANT,
        revision=0,
        actor="late",
        detail="{}",
    )

    assert late == []
    assert await stage.contents() == before


async def test_without_a_revision_the_last_change_wins(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.READY)
    await app.runs.change(run.id, priority=1)
    assert (await app.runs.change(run.id, priority=2)).priority == 2


async def test_a_claim_that_came_first_wins(app: Mainspring, stage: Stage) -> None:
    run_id = (await stage.set_up(State.RUNNING)).run_id
    before = await stage.contents()

    with pytest.raises(RunAlreadyStarted, match="Cancel it, or let it finish") as refused:
        await app.runs.change(run_id, priority=1)

    assert refused.value.code == "run-already-started"
    assert await stage.contents() == before


@pytest.mark.parametrize("state", OVER)
async def test_what_is_over_cannot_be_changed(app: Mainspring, stage: Stage, state: State) -> None:
    run_id = (await stage.set_up(state)).run_id
    before = await stage.contents()

    with pytest.raises(RunAlreadyEnded, match=f"is {state}; there is nothing to change") as refused:
        await app.runs.change(run_id, priority=1)

    assert refused.value.code == "run-already-ended"
    assert await stage.contents() == before


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({}, InvalidInput, "nothing-to-change"),
        ({"queue": "nowhere"}, QueueNotFound, "queue-not-found"),
        ({"queue": "not a name"}, InvalidInput, "invalid-queue"),
        ({"priority": 10}, InvalidInput, "invalid-priority"),
        ({"tags": "urgent"}, InvalidInput, "invalid-tags"),
        ({"at": datetime(2031, 1, 1)}, InvalidInput, "invalid-at"),  # noqa: DTZ001
        ({"max_age": 0}, InvalidInput, "invalid-max-age"),
        ({"arguments": {"b": 1}}, InvalidArguments, "invalid-arguments"),
    ],
)
async def test_a_change_that_breaks_a_rule_changes_nothing(
    app: Mainspring, stage: Stage, changes: dict[str, Any], error: type[InvalidInput], code: str
) -> None:
    run = await waiting(app, stage, State.READY)
    before = await stage.contents()

    with pytest.raises(error) as refused:
        await app.runs.change(run.id, **changes)

    assert refused.value.code == code
    assert await stage.contents() == before


async def test_an_unknown_queue_is_refused_with_the_nearest_one(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.READY)
    with pytest.raises(QueueNotFound, match="Did you mean 'mail'"):
        await app.runs.change(run.id, queue="mial")


async def test_a_run_that_never_was_is_not_found(app: Mainspring) -> None:
    with pytest.raises(RunNotFound):
        await app.runs.change(unknown_id(), priority=1)


async def test_a_change_stays_in_the_lane_of_its_run(app: Mainspring, stage: Stage) -> None:
    run = await waiting(app, stage, State.SCHEDULED)
    await app.runs.change(run.id, at=YESTERDAY, queue="mail")
    assert await stage.observer.fetchval("select lane from ready") == lane_of(run.id)
