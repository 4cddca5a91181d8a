"""Lists of runs: whatever their state, newest first, page by page, over what a filter lets through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring import Mainspring, RetryPolicy
from mainspring.clock import instant
from mainspring.control import looking
from mainspring.errors import FilterTooWide, InvalidInput, JobNotFound, MainspringError, QueueNotFound
from mainspring.model.filter import RunFilter, filter_of, run_filter
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.model.listing import Position, first_id_at, position_of_id
from mainspring.store import leases, lists
from mainspring.store.submissions import new_run_ids
from mainspring.testing import FrozenClock, run_until_idle

if TYPE_CHECKING:
    import asyncpg

    from mainspring.app.handle import Handle

    Connection = asyncpg.Connection[asyncpg.Record]

FAST = RetryPolicy(max_attempts=2, first_delay=timedelta(0))
LANES = 8
SLOW = RetryPolicy(max_attempts=2, first_delay=timedelta(hours=1))


class World:
    """Runs in many states, each submitted a minute after the one before."""

    def __init__(self, app: Mainspring, clock: FrozenClock) -> None:
        self.app, self.clock = app, clock

        @app.job
        async def good(n: int = 0) -> int:
            return n

        @app.job(retry=FAST, queue="mail")
        async def bad(text: str = "The Mail server is away") -> None:
            raise ConnectionError(text)

        @app.job(retry=SLOW)
        async def slow() -> None:
            raise ValueError("100% _wrong_")

        self.good, self.bad, self.slow = good, bad, slow
        self.runs: dict[str, UUID] = {}

    async def make(self) -> World:
        await self.submitted("succeeded", self.good.submit(1))
        await self.submitted("dead", self.bad.options(tags=["x", "y"]).submit())
        await self.submitted("backing off", self.slow.submit())
        await run_until_idle(self.app)
        await self.clock.advance(60)
        await self.submitted("cancelled", self.good.options(tags=["x"]).submit())
        await self.app.runs.cancel(self.runs["cancelled"], reason="no need")
        await self.submitted("scheduled", self.good.options(delay=7200, tags=["x"]).submit())
        await self.submitted("ready", self.good.submit())
        await self.submitted("mail", self.good.options(queue="mail", tags=["x"]).submit())
        return self

    async def submitted(self, name: str, submission: Any) -> None:
        handle: Handle[Any] = await submission
        self.runs[name] = handle.id
        await self.clock.advance(60)

    def names(self, runs: list[Any]) -> list[str]:
        by_id = {run_id: name for name, run_id in self.runs.items()}
        return [by_id[run.id] for run in runs]

    async def list(self, **wanted: Any) -> list[str]:
        return self.names((await self.app.runs.list(**wanted)).runs)


@pytest.fixture
async def world(frozen_app: Mainspring, clock: FrozenClock) -> World:
    return await World(frozen_app, clock).make()


# ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_runs_come_newest_first_by_their_end_or_else_by_their_submission(world: World) -> None:
    assert await world.list() == [
        "mail",
        "ready",
        "scheduled",
        "cancelled",
        "succeeded",
        "backing off",
        "dead",
    ]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_put_together_are_the_whole_list(world: World, limit: int) -> None:
    pages, cursor = [], None
    while True:
        page = await world.app.runs.list(limit=limit, cursor=cursor)
        pages += world.names(page.runs)
        cursor = page.cursor
        if cursor is None:
            break

    assert pages == await world.list()


async def test_each_goes_through_all_pages(world: World) -> None:
    assert world.names([run async for run in world.app.runs.each()]) == await world.list()
    only = [run async for run in world.app.runs.each(run_filter(tags=["x"], state="cancelled"))]
    assert world.names(only) == ["cancelled"]


async def test_what_comes_later_does_not_move_the_pages_below(world: World) -> None:
    first = await world.app.runs.list(limit=2)
    expected = (await world.list())[2:]

    await world.submitted("late", world.good.submit())
    await world.app.runs.cancel(world.runs["ready"], reason="it ends now, and stands above")
    second = await world.app.runs.list(limit=100, cursor=first.cursor)

    assert world.names(second.runs) == expected


async def test_a_run_that_only_moves_to_another_place_keeps_its_place_in_the_list(world: World) -> None:
    first = await world.app.runs.list(limit=1)

    await world.clock.advance(7_200)
    async with (await world.app.services()).store.database.acquire() as connection:
        for lane in range(8):
            await _claim(connection, lane)
    second = await world.app.runs.list(limit=100, cursor=first.cursor)

    states = dict(zip(world.names(second.runs), (run.state for run in second.runs), strict=True))
    assert states["ready"] is State.RUNNING
    assert len(states) == len(world.runs) - 1


async def _claim(connection: Any, lane: int) -> None:
    await leases.claim(
        connection,
        lane=lane,
        line=1,
        priorities=range(10),
        fronts=[0] * 10,
        count=10,
        lease_id=uuid4(),
        worker_id=await registered_worker(connection),
    )


async def test_many_runs_of_one_instant_are_paged_without_a_gap(frozen_app: Mainspring) -> None:
    @frozen_app.job
    async def nothing() -> None: ...

    ids = {handle.id for handle in await nothing.submit_many([{}] * 150)}
    await run_until_idle(frozen_app)
    ids |= {handle.id for handle in await nothing.submit_many([{}] * 150)}

    pages = [run.id async for run in _paged(frozen_app, 40)]

    assert len(pages) == len(set(pages)) == 300
    assert set(pages) == ids


async def _paged(app: Mainspring, limit: int) -> Any:
    page = await app.runs.list(limit=limit)
    while True:
        for run in page.runs:
            yield run
        if page.cursor is None:
            return
        page = await app.runs.list(limit=limit, cursor=page.cursor)


def test_a_position_knows_which_ids_stand_below_it() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    one = new_run_ids(1, 3, at)[0]

    assert position_of_id(one).before_id == one
    assert first_id_at(at) <= one < first_id_at(at + timedelta(milliseconds=1))
    within = Position(position_of_id(one).at + 1, UUID(int=0))
    assert one < within.before_id <= first_id_at(at + timedelta(milliseconds=1))
    assert Position(position_of_id(one).at, UUID(int=0)).before_id <= one
    assert one < Position(position_of_id(one).at, UUID(int=2**128 - 1)).before_id


# ── filters ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({"job": "bad"}, ["dead"]),
        ({"job": ["bad", "slow"]}, ["backing off", "dead"]),
        ({"queue": "mail"}, ["mail", "dead"]),
        ({"queue": ["mail", "default"], "job": "bad"}, ["dead"]),
        ({"queue": "default", "job": "bad"}, []),
        ({"state": "ready"}, ["mail", "ready"]),
        ({"state": ["cancelled", "dead"]}, ["cancelled", "dead"]),
        ({"state": "cancelled", "job": "good", "queue": "default"}, ["cancelled"]),
        ({"state": "cancelled", "queue": "mail"}, []),
        ({"state": [State.SUCCEEDED]}, ["succeeded"]),
        ({"state": "running"}, []),
        ({"tags": ["x"]}, ["mail", "scheduled", "cancelled", "dead"]),
        ({"tags": ["x", "y"]}, ["dead"]),
        ({"tags": ["z"]}, []),
        ({"failed": True}, ["backing off", "dead"]),
        ({"failed": True, "state": "dead"}, ["dead"]),
        ({"failed": True, "state": ["scheduled", "ready"]}, ["backing off"]),
        ({"failed": True, "job": "good"}, []),
        ({"error": "mail SERVER"}, ["dead"]),
        ({"error": "ConnectionError: The Mail"}, ["dead"]),
        ({"error": "mail", "state": "dead"}, ["dead"]),
        ({"error": "mail", "state": "dead", "tags": ["z"]}, []),
        ({"error": "nothing like it", "state": "dead"}, []),
        ({"error": "100% _"}, ["backing off"]),
        ({"error": "%"}, ["backing off"]),
        ({"error": "'; drop table ready; --"}, []),
    ],
)
async def test_a_filter_lets_through_what_it_names(world: World, wanted: dict[str, Any], names: list[str]) -> None:
    assert await world.list(**wanted) == names


async def test_time_is_when_a_run_ended_or_else_was_submitted(world: World, clock: FrozenClock) -> None:
    begun = clock.at - timedelta(minutes=8)
    assert await world.list(since=clock.at - timedelta(minutes=2)) == ["mail", "ready"]
    assert await world.list(until=clock.at - timedelta(minutes=4)) == ["succeeded", "backing off", "dead"]
    assert await world.list(since=begun, until=begun) == []
    assert await world.list(since=begun + timedelta(minutes=3), until=begun + timedelta(minutes=4)) == ["succeeded"]
    assert await world.list(until=clock.at - timedelta(days=400)) == []
    assert len(await world.list(since=clock.at - timedelta(days=400))) == 7


async def test_a_run_that_failed_twice_is_listed_once_at_its_latest_failure(world: World, clock: FrozenClock) -> None:
    await clock.advance(7200)
    await run_until_idle(world.app, queues=["default"], travel=False)

    page = await world.app.runs.list(failed=True)

    assert world.names(page.runs) == ["backing off", "dead"]
    assert [(run.state, run.attempts_spent) for run in page.runs] == [(State.DEAD, 2), (State.DEAD, 2)]


async def test_a_list_shows_what_is_known_without_payloads(world: World, clock: FrozenClock) -> None:
    dead = (await world.app.runs.list(state="dead")).runs[0]

    assert (dead.job, dead.queue, dead.state, dead.attempts_spent, dead.fence) == ("bad", "mail", State.DEAD, 2, 2)
    assert dead.error == {"type": "ConnectionError", "message": "The Mail server is away"}
    assert dead.submitted_by == "tester"
    assert not hasattr(dead, "payload")


async def test_counts_are_exact_up_to_a_bound(world: World) -> None:
    count = world.app.runs.count

    assert str(await world.app.runs.count(run_filter(tags=["x"]))) == "4"
    assert str(await count(RunFilter(), bound=7)) == "7"
    assert str(await count(RunFilter(), bound=3)) == "more than 3"


@pytest.mark.invariant(12)
async def test_runs_of_another_tenant_are_not_there(world: World, connection: Connection) -> None:
    for table in ("ready", "later", "dead", "attempt"):
        await connection.execute(f"update {table} set tenant_id = 2")  # noqa: S608

    assert await world.list() == []
    assert await world.list(failed=True) == []


def test_a_filter_survives_being_stored() -> None:
    wanted = run_filter(job="a", state="dead", since=datetime(2030, 1, 1, tzinfo=UTC), error="x", failed=True)

    assert filter_of(wanted.as_document()) == wanted
    assert RunFilter().as_document() == {}


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────

NAIVE = datetime(2030, 1, 1)  # noqa: DTZ001  that is what is refused


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"job": "no way"}, "invalid-job"),
        ({"job": "\x00"}, "invalid-job"),
        ({"job": [f"job{n}" for n in range(101)]}, "invalid-filter"),
        ({"queue": "'; --"}, "invalid-queue"),
        ({"state": "deaf"}, "invalid-state"),
        ({"state": "\ud800" * 100}, "invalid-state"),
        ({"tags": ["\x00"]}, "invalid-tags"),
        ({"tags": "x"}, "invalid-tags"),
        ({"tags": ["x" * 101]}, "invalid-tags"),
        ({"error": "\ud800"}, "invalid-error"),
        ({"error": ""}, "invalid-error"),
        ({"error": "x" * 501}, "invalid-error"),
        ({"since": NAIVE}, "invalid-since"),
        ({"since": NAIVE.replace(tzinfo=UTC), "until": NAIVE.replace(tzinfo=UTC, year=2020)}, "invalid-since"),
        ({"until": "yesterday"}, "invalid-until"),
        ({"limit": 0}, "invalid-limit"),
        ({"limit": 1_001}, "invalid-limit"),
        ({"limit": True}, "invalid-limit"),
        ({"cursor": ""}, "invalid-cursor"),
        ({"cursor": "\ud800"}, "invalid-cursor"),
        ({"cursor": "A" * 44}, "invalid-cursor"),
        ({"cursor": "A" * 100_000}, "invalid-cursor"),
    ],
)
async def test_what_is_no_filter_is_refused_with_its_code(app: Mainspring, wanted: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await app.runs.list(**wanted)

    assert refused.value.code == code
    assert {"field", "value", "rule"} <= set(refused.value.fields)


async def test_what_is_no_job_or_page_of_jobs_is_refused_with_its_code(app: Mainspring) -> None:
    known = app.jobs
    for asked, code in (
        (known.find("\ud800"), "invalid-job"),
        (known.list(after="\x00"), "invalid-after"),
        (known.list(after="x" * 101), "invalid-after"),
        (known.list(limit=0), "invalid-limit"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await asked
        assert refused.value.code == code


async def test_an_error_without_a_type_is_not_about_none(world: World, connection: Connection) -> None:
    await connection.execute("update attempt set error = error - 'type' where state = 'dead'")

    assert await world.list(error="none", state="dead") == []
    assert await world.list(error=": the mail", state="dead") == ["dead"]


def test_a_single_name_is_no_list_of_letters() -> None:
    wanted = RunFilter(jobs="pay", queues="bank", states="dead")  # type: ignore[arg-type]

    assert wanted == RunFilter(jobs=("pay",), queues=("bank",), states=(State.DEAD,))


async def test_names_that_are_not_there_are_refused_with_those_that_are(world: World) -> None:
    with pytest.raises(JobNotFound, match="Did you mean 'good'"):
        await world.list(job="goood")
    with pytest.raises(QueueNotFound, match="Did you mean 'mail'"):
        await world.list(queue="mali")
    with pytest.raises(InvalidInput, match="Did you mean 'dead'"):
        await world.list(state="daed")


async def test_a_cursor_belongs_to_its_filter(world: World) -> None:
    page = await world.app.runs.list(limit=1, queue="mail")

    with pytest.raises(InvalidInput, match="belongs to a list with another filter") as refused:
        await world.list(cursor=page.cursor, queue="default")

    assert refused.value.code == "invalid-cursor"


@pytest.mark.parametrize(
    ("wanted", "hint"),
    [
        ({"tags": ["z"]}, "Add a job, a queue, a state, a time (since, until), so that"),
        ({"tags": ["z"], "job": "good"}, "Add a queue, a state, a time"),
        ({"error": "nothing", "state": "dead"}, "Add a job, a queue, a time"),
        ({"error": "nothing"}, "Add a job"),
        ({"failed": True, "state": "lost"}, "Add a job"),
    ],
)
async def test_a_filter_that_would_look_at_too_much_is_refused_with_what_to_add(
    frozen_app: Mainspring, monkeypatch: pytest.MonkeyPatch, wanted: dict[str, Any], hint: str
) -> None:
    world = World(frozen_app, FrozenClock())
    await world.good.submit_many([{}] * 100)
    await world.bad.submit_many([{}] * 100)
    await run_until_idle(frozen_app, queues=["mail"])
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 6)
    monkeypatch.setattr(lists, "TIMES_ALONG_LINES", 1)

    with pytest.raises(FilterTooWide) as refused:
        await frozen_app.runs.list(limit=4, **wanted)

    error: MainspringError = refused.value
    assert error.code == "filter-too-wide"
    assert hint in str(error.hint)


async def test_many_jobs_and_queues_do_not_hide_what_waits_or_is_dead(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MOST_PAIRS", 1)

    assert await world.list(state=["dead", "ready"]) == ["mail", "ready", "dead"]
    assert await world.list(state="dead", error="mail") == ["dead"]
    for wanted in ({}, {"state": "succeeded"}, {"failed": True}):
        with pytest.raises(FilterTooWide, match="pairs of job and queue"):
            await world.list(**wanted)


async def test_a_filter_that_fills_its_page_soon_is_not_too_wide(
    frozen_app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(frozen_app, FrozenClock())
    await world.good.submit_many([{}] * 100)
    await world.good.options(tags=["x"]).submit_many([{}] * 20)
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 6)

    assert len((await frozen_app.runs.list(limit=4, tags=["x"])).runs) == 4
    assert len((await frozen_app.runs.list(limit=100)).runs) == 100


# ── in line, where there is no index by job ─────────────────────────────────────────────────────────────────────


async def test_a_rare_job_is_found_deep_in_the_backlog(
    frozen_app: Mainspring, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the newest of each lane, the index of claims is read along the lines."""
    world = World(frozen_app, clock)
    rare = [(await world.slow.submit()).id for _ in range(3)]
    later = (await world.slow.options(delay=3600).submit()).id
    await world.bad.submit()
    await _cover(world.good)
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 10)

    assert await _ids(frozen_app, job="slow", state="ready") == sorted(rare, reverse=True)
    assert await _ids(frozen_app, job="slow") == sorted([*rare, later], reverse=True)
    assert await _ids(frozen_app, job=["slow", "bad"], state="ready", queue="default") == sorted(rare, reverse=True)


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
async def test_pages_of_a_queue_deep_in_the_backlog_put_together_are_all_its_runs(
    frozen_app: Mainspring, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    world = World(frozen_app, clock)
    mail = [(await world.bad.submit()).id for _ in range(9)]
    await _cover(world.good)
    mail += [(await world.bad.submit()).id for _ in range(9)]
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 10)

    found, cursor = [], None
    while True:
        page = await frozen_app.runs.list(queue="mail", state="ready", limit=limit, cursor=cursor)
        found += [run.id for run in page.runs]
        if (cursor := page.cursor) is None:
            break

    assert found == sorted(mail, reverse=True)


async def test_too_many_runs_of_a_job_below_those_of_others_are_too_wide(
    frozen_app: Mainspring, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of them are the newest is not known then; those before a time are."""
    world = World(frozen_app, clock)
    await _cover(world.slow)
    await clock.advance(60)
    between = instant(clock)
    await clock.advance(60)
    await _cover(world.good)
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 10)
    monkeypatch.setattr(lists, "TIMES_ALONG_LINES", 1)

    with pytest.raises(FilterTooWide):
        await frozen_app.runs.list(job="slow", limit=5)

    assert len((await frozen_app.runs.list(job="slow", limit=5, until=between)).runs) == 5


async def _cover(job: Any) -> None:
    """Submit more runs to every lane than a look at the newest sees."""
    lanes: set[int] = set()
    while len(lanes) < LANES:
        lanes |= {lane_of(handle.id) for handle in await job.submit_many([{}] * 20)}


async def _ids(app: Mainspring, **wanted: Any) -> list[UUID]:
    return [run.id for run in (await app.runs.list(**wanted)).runs]
