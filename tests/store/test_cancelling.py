"""Cancelling: a waiting run ends at once, a running one is asked to stop, and what is over stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import msgspec
import pytest

from mainspring.errors import InvalidInput, RunAlreadyEnded, RunNotFound
from mainspring.model.lifecycle import WAITING, Outcome, State
from mainspring.store import notify

from ..lifecycle.moves import STAGED, state_at
from ..lifecycle.verbs import WAYS, Stage, obey

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

OVER = [State.DEAD, State.LOST, State.SUCCEEDED, State.CANCELLED, State.EXPIRED]


@pytest.fixture
async def stage(database: Database) -> AsyncIterator[Stage]:
    """Puts runs into any state, in the database of the test's application."""
    stage = await Stage.opens(database)
    yield stage
    await stage.closes()


async def audit_of(connection: Connection, run_id: UUID) -> list[tuple[str, str, dict[str, Any]]]:
    rows = await connection.fetch("select actor, action, detail from audit where subject = $1", str(run_id))
    return [(row["actor"], row["action"], msgspec.json.decode(row["detail"])) for row in rows]


@pytest.mark.parametrize("spot", [*sorted(WAITING), STAGED])
async def test_a_waiting_run_ends_at_once_wherever_it_waits(app: Mainspring, stage: Stage, spot: str) -> None:
    run_id = (await stage.set_up(spot)).run_id

    assert await app.runs.cancel(run_id, reason="ordered twice") is State.CANCELLED

    run = await app.runs.find(run_id)
    end = run.attempts[-1]
    assert (run.state, end.number, end.outcome) == (State.CANCELLED, 0, Outcome.CANCELLED)
    assert end.error == {"code": "cancelled", "message": "ordered twice"}
    assert run.payload == {"a": 1}
    assert await audit_of(stage.observer, run_id) == [("tester", "run.cancel", {"reason": "ordered twice"})]


async def test_a_running_run_is_asked_to_stop_and_its_worker_is_woken(
    app: Mainspring, stage: Stage, connection: Connection
) -> None:
    heard: list[tuple[str, str]] = []
    await notify.listen(connection, lambda channel, payload: heard.append((channel, payload)))
    subject = await stage.set_up(State.RUNNING)

    assert await app.runs.cancel(subject.run_id, reason="changed our mind") is State.RUNNING

    run = await app.runs.find(subject.run_id)
    assert (run.state, run.is_cancelling) == (State.RUNNING, True)
    assert await audit_of(connection, subject.run_id) == [("tester", "run.cancel", {"reason": "changed our mind"})]
    assert (notify.CANCEL, str(subject.worker_id)) in heard


async def test_a_run_that_stops_because_it_was_asked_to_has_ended_as_cancelled(app: Mainspring, stage: Stage) -> None:
    subject = await stage.set_up(State.RUNNING)
    await app.runs.cancel(subject.run_id)
    await obey(stage.first, subject, State.RUNNING)

    run = await app.runs.find(subject.run_id)
    assert (run.state, run.attempts[-1].outcome, run.is_cancelling) == (State.CANCELLED, Outcome.CANCELLED, False)


async def test_asking_a_running_run_twice_is_asking_it_once_but_each_is_on_record(
    app: Mainspring, stage: Stage
) -> None:
    run_id = (await stage.set_up(State.RUNNING)).run_id

    assert [await app.runs.cancel(run_id, reason=each) for each in ("please", "now")] == [State.RUNNING] * 2

    assert sorted(act[2]["reason"] for act in await audit_of(stage.observer, run_id)) == ["now", "please"]


@pytest.mark.parametrize("state", OVER)
async def test_what_is_over_cannot_be_cancelled_and_its_state_is_named(
    app: Mainspring, stage: Stage, state: State
) -> None:
    run_id = (await stage.set_up(state)).run_id
    before = await stage.contents()

    with pytest.raises(RunAlreadyEnded, match=f"is {state}; there is nothing to cancel") as refused:
        await app.runs.cancel(run_id)

    assert refused.value.code == "run-already-ended"
    assert refused.value.fields["state"] == state
    assert await stage.contents() == before


async def test_cancelling_twice_says_that_it_has_ended(app: Mainspring, stage: Stage) -> None:
    run_id = (await stage.set_up(State.READY)).run_id
    await app.runs.cancel(run_id)
    with pytest.raises(RunAlreadyEnded, match="is cancelled"):
        await app.runs.cancel(run_id)


async def test_only_the_run_that_was_named_is_cancelled(app: Mainspring, stage: Stage) -> None:
    subject, neighbour = await stage.set_up(State.READY), await stage.submit(key="neighbour")
    await app.runs.cancel(subject.run_id)
    assert (await app.runs.find(neighbour.run_id)).state is State.READY


def unknown_id(lane: int = 0) -> UUID:
    return UUID(f"0199a1b2-c3d4-8{lane:03x}-9f00-{uuid4().hex[:12]}")


@pytest.mark.parametrize("lane", [0, 7, 8, 4095])
async def test_a_run_that_never_was_is_not_found(app: Mainspring, lane: int) -> None:
    """Neither in a lane that exists nor in one that does not."""
    run_id = unknown_id(lane)
    with pytest.raises(RunNotFound, match=str(run_id)) as refused:
        await app.runs.cancel(run_id)
    assert refused.value.code == "run-not-found"


@pytest.mark.parametrize("text", ["", "7", "not-a-run", "0199a1b2-c3d4-4005-9f00-0123456789ab", "' or true --"])
async def test_what_is_not_a_run_id_is_refused_with_an_example(app: Mainspring, text: str) -> None:
    with pytest.raises(InvalidInput, match="A run id is a UUID such as") as refused:
        await app.runs.cancel(text)
    assert refused.value.code == "invalid-run-id"


async def test_a_run_id_may_be_written_as_text(app: Mainspring, stage: Stage) -> None:
    run_id = (await stage.set_up(State.READY)).run_id
    assert await app.runs.cancel(str(run_id).upper()) is State.CANCELLED


@pytest.mark.parametrize("reason", ["x" * 1001, "nul \0", "lone \ud800"])
async def test_a_reason_that_cannot_be_kept_is_refused_before_anything_happens(
    app: Mainspring, stage: Stage, reason: str
) -> None:
    run_id = (await stage.set_up(State.READY)).run_id
    with pytest.raises(InvalidInput, match="reason"):
        await app.runs.cancel(run_id, reason=reason)
    assert (await app.runs.find(run_id)).state is State.READY


def test_every_state_is_looked_at_here() -> None:
    assert {state_at(spot) for spot in WAYS} == {*WAITING, State.RUNNING, *OVER}
