"""Schedules rolled back, looked at and previewed; what did not fire on time can be asked for alone."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import pytest

from mainspring.cli.scheduler import _next_due
from mainspring.errors import InvalidInput, ScheduleNotFound, ScheduleVersionConflict
from mainspring.model.lifecycle import State
from mainspring.testing import run_until_idle

from .scheduling import DAY, HOUR, MINUTE, NEW_YEAR, Firing, remind

if TYPE_CHECKING:
    from typing import Any

    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


class Pass(Protocol):
    async def __call__(self, span: timedelta) -> None: ...


@pytest.fixture
def report(frozen_app: Mainspring) -> Job[Any, Any]:
    @frozen_app.job
    async def report(day: str = "") -> str:
        return day

    return report


@pytest.fixture
async def let_pass(clock: FrozenClock, connection: Connection) -> Pass:
    """Let so much time pass, and then fire what is due by then."""
    firing = Firing(connection, clock)

    async def let_pass(span: timedelta) -> None:
        await clock.advance(span)
        await firing.fire()

    return let_pass


# ── rollback ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_rollback_makes_a_new_version_of_an_older_content(
    frozen_app: Mainspring, report: Job[Any, Any], connection: Connection
) -> None:
    options = report.options(priority=0, tags=["a"], timeout=30)
    first = await options.scheduled("daily", "0 9 * * *", catch_up="all").create("Mon")
    await report.scheduled("daily", "0 10 * * *").put("Tue")
    again = await frozen_app.schedules.rollback("daily", to=1)

    assert again.version == 3
    for field in ("job", "when", "payload", "options", "tags", "catch_up", "next_at"):
        assert getattr(again, field) == getattr(first, field), field
    assert [each.version for each in await frozen_app.schedules.versions("daily")] == [3, 2, 1]
    actions = "select array_agg(action order by action) from audit where action like 'schedule.%'"
    assert await connection.fetchval(actions) == ["schedule.create", "schedule.replace", "schedule.rollback"]


async def test_a_rollback_to_what_it_is_changes_nothing(frozen_app: Mainspring, report: Job[Any, Any]) -> None:
    await report.scheduled("daily", "0 9 * * *").create()
    assert (await frozen_app.schedules.rollback("daily", to=1)).version == 1


@pytest.mark.parametrize("version", [-1, 0, 3, 1 << 40])
async def test_a_version_that_never_was_is_refused(frozen_app: Mainspring, report: Job[Any, Any], version: int) -> None:
    await report.scheduled("daily", "0 9 * * *").create()
    await report.scheduled("daily", "0 10 * * *").put()
    with pytest.raises(ScheduleNotFound, match=f"no version {version}; it is at version 2") as caught:
        await frozen_app.schedules.rollback("daily", to=version)
    assert caught.value.code == "schedule-version-not-found"


async def test_a_version_of_a_deleted_schedule_is_not_one_of_its_successor(
    frozen_app: Mainspring, report: Job[Any, Any]
) -> None:
    await report.scheduled("daily", "0 7 * * *").create()
    await report.scheduled("daily", "0 8 * * *").put()
    await frozen_app.schedules.delete("daily")
    await report.scheduled("daily", "0 9 * * *").create()
    await report.scheduled("daily", "0 10 * * *").put()

    assert (await frozen_app.schedules.rollback("daily", to=1)).when == "0 9 * * *"


async def test_a_rollback_may_expect_a_version(frozen_app: Mainspring, report: Job[Any, Any]) -> None:
    await report.scheduled("daily", "0 9 * * *").create()
    await report.scheduled("daily", "0 10 * * *").put()
    with pytest.raises(ScheduleVersionConflict):
        await frozen_app.schedules.rollback("daily", to=1, expected_version=1)


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_history_says_in_which_states_the_runs_are(
    frozen_app: Mainspring, report: Job[Any, Any], let_pass: Pass
) -> None:
    await report.scheduled("hourly", "0 * * * *").create()
    await let_pass(61 * MINUTE)
    await let_pass(timedelta(seconds=1))  # runs that fire at one instant stand in line one after the other
    await run_until_idle(frozen_app)
    await let_pass(HOUR)
    await let_pass(timedelta(seconds=1))

    assert [each.run_state for each in await frozen_app.schedules.history("hourly")] == [State.READY, State.SUCCEEDED]


async def test_history_shows_the_last_run_of_an_instant_and_names_the_first(
    frozen_app: Mainspring, report: Job[Any, Any], let_pass: Pass
) -> None:
    await report.scheduled("hourly", "0 * * * *").create()
    await let_pass(61 * MINUTE)
    await let_pass(timedelta(seconds=1))
    (before,) = await frozen_app.schedules.history("hourly")
    assert before.run_id is not None
    assert before.first_run_id is None
    await frozen_app.runs.cancel(before.run_id)

    again = (await frozen_app.runs.rerun(before.run_id)).id
    (waiting,) = await frozen_app.schedules.history("hourly")
    assert (waiting.run_id, waiting.run_state, waiting.first_run_id) == (again, State.READY, before.run_id)
    await run_until_idle(frozen_app)
    once_more = (await frozen_app.runs.rerun(again)).id
    await run_until_idle(frozen_app)
    (after,) = await frozen_app.schedules.history("hourly")
    assert (after.run_id, after.run_state, after.first_run_id) == (once_more, State.SUCCEEDED, before.run_id)
    assert (after.nominal_at, after.decided_at) == (before.nominal_at, before.decided_at)


async def test_history_follows_a_bounded_number_of_reruns(
    frozen_app: Mainspring, report: Job[Any, Any], let_pass: Pass, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.control.schedule_queries.MOST_RERUNS", 2)
    await report.scheduled("hourly", "0 * * * *").create()
    await let_pass(61 * MINUTE)
    await let_pass(timedelta(seconds=1))
    chain = [each.run_id for each in await frozen_app.schedules.history("hourly")]
    for _ in range(3):
        await run_until_idle(frozen_app)
        chain.append((await frozen_app.runs.rerun(str(chain[-1]))).id)

    (record,) = await frozen_app.schedules.history("hourly")
    assert (record.run_id, record.first_run_id) == (chain[2], chain[0])


async def test_what_was_collapsed_into_a_run_stands_with_its_rerun(
    frozen_app: Mainspring, report: Job[Any, Any], let_pass: Pass
) -> None:
    await report.scheduled("hourly", "0 * * * *").create()
    await let_pass(3.5 * HOUR)
    await let_pass(timedelta(seconds=1))
    await run_until_idle(frozen_app)
    first = (await frozen_app.schedules.history("hourly"))[0].run_id

    again = (await frozen_app.runs.rerun(str(first))).id
    records = await frozen_app.schedules.history("hourly")
    assert [each.outcome for each in records] == ["fired", "collapsed"]
    assert [(each.run_id, each.first_run_id) for each in records] == [(again, first)] * 2


async def test_what_did_not_fire_on_time_can_be_asked_for_alone(
    frozen_app: Mainspring, report: Job[Any, Any], let_pass: Pass
) -> None:
    """A limit counts what is asked for: what was missed is found behind any number of instants that fired."""
    await report.scheduled("hourly", "0 * * * *").create()
    await let_pass(HOUR)
    await let_pass(3.5 * HOUR)  # of three instants one fires, half an hour late
    for _ in range(3):
        await let_pass(30 * MINUTE)

    everything = await frozen_app.schedules.history("hourly")
    missed = await frozen_app.schedules.history("hourly", missed=True, limit=2)
    assert [each.outcome for each in everything] == ["fired", "fired", "fired", "collapsed", "fired"]
    assert [(each.outcome, each.late) for each in missed] == [
        ("fired", 30 * MINUTE),
        ("collapsed", None),
    ]
    assert missed[1].run_id == missed[0].run_id


async def test_a_preview_begins_at_the_present_or_where_a_pause_ends(
    frozen_app: Mainspring, report: Job[Any, Any], clock: FrozenClock
) -> None:
    await report.scheduled("daily", "0 9 * * *").create()
    coming = await frozen_app.schedules.preview("daily", count=2)
    assert [each.due_at for each in coming.entries] == [NEW_YEAR + n * DAY + 9 * HOUR for n in (0, 1)]

    until = NEW_YEAR + 7 * DAY + 9 * HOUR
    await frozen_app.schedules.pause("daily", until=until)
    assert (await frozen_app.schedules.preview("daily")).entries[0].due_at == until


async def test_a_pause_does_not_end_before_it_begins(frozen_app: Mainspring, report: Job[Any, Any]) -> None:
    await report.scheduled("daily", "0 9 * * *").create()
    with pytest.raises(InvalidInput, match="it must be after the present") as caught:
        await frozen_app.schedules.pause("daily", until=NEW_YEAR)
    assert caught.value.code == "invalid-until"
    assert (await frozen_app.schedules.find("daily")).paused_at is None


async def test_the_history_of_an_empty_range_is_refused(frozen_app: Mainspring) -> None:
    await remind(frozen_app).scheduled("daily", "0 9 * * *").create(1)

    with pytest.raises(InvalidInput, match="must be earlier than before") as refused:
        await frozen_app.schedules.history("daily", since=NEW_YEAR, before=NEW_YEAR - HOUR)

    assert (refused.value.code, refused.value.fields["field"]) == ("invalid-since", "since")


async def test_what_is_due_next_is_not_past(frozen_app: Mainspring, clock: FrozenClock) -> None:
    """Cursors of frequent schedules are behind while nobody fires them."""

    @frozen_app.job(schedule="every 5 seconds")
    async def tick() -> None: ...

    await frozen_app.schedules.apply()
    await clock.set(NEW_YEAR + MINUTE)

    assert await _next_due(frozen_app, frozen_app) == ["next: tick at 2031-01-01 00:01:05 UTC"]
