"""Runs that succeeded in one lease are in the index of jobs once, and are found as if each had an entry of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring.control import looking
from mainspring.errors import FilterTooWide
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.run import NewRun
from mainspring.store import completions, health, jobs, leases
from mainspring.store.submissions import copy_plain, new_run_ids

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

LANES = 8
STRANGER = DEFAULT_TENANT + 1
# What lists should find, read without any index.
ENDED = """
    select run_id from attempt join job on job.id = attempt.job_id
    where attempt.tenant_id = 1 and state in ('succeeded', 'cancelled', 'expired', 'lost')
      and ($1::text is null or job.name = $1) and ($2::text[] is null or tags @> $2)
    order by recorded_at desc, run_id desc"""
NAMED = """
    select head.run_id as head, head.job_id, head.tags, head.tenant_id, head.covers,
           array(select run_id from attempt as other
                 where other.is_covered and other.run_id = any (head.covers) and other.lane = head.lane
                   and (other.tenant_id, other.job_id, other.line_id, other.state, other.recorded_at)
                       = (head.tenant_id, head.job_id, head.line_id, head.state, head.recorded_at)
                   and other.tags is not distinct from head.tags) as others
    from attempt as head where head.covers is not null"""


class Mill:
    """Makes history as workers do: runs are accepted, claimed and completed, a whole lease at a time."""

    def __init__(self, connection: Connection, clock: FrozenClock, worker_id: UUID, line: int) -> None:
        self.connection, self._clock, self._worker_id, self.line = connection, clock, worker_id, line
        self.jobs: dict[str, int] = {}

    @classmethod
    async def open(cls, connection: Connection, clock: FrozenClock) -> Mill:
        await jobs.open_queues(connection, ["default"], tenant_id=DEFAULT_TENANT)
        line = await connection.fetchval("select id from line where tenant_id = $1", DEFAULT_TENANT)
        mill = cls(connection, clock, await registered_worker(connection), line)
        for name in ("grind", "sift"):
            await jobs.register(connection, name, {}, actor="tester", tenant_id=DEFAULT_TENANT)
            mill.jobs[name] = await connection.fetchval("select id from job where name = $1", name)
        return mill

    async def claim(
        self, *groups: tuple[str, int], lane: int = 3, tags: list[str] | None = None, tenant: int = DEFAULT_TENANT
    ) -> completions.Completion:
        """One lease with so many runs of each job, in turns."""
        left = dict(groups)
        names = [name for turn in range(max(left.values())) for name in left if turn < left[name]]
        new = [NewRun(tenant, self.jobs[name], 1, self.line, 5, b"{}", tags=tags) for name in names]
        await copy_plain(self.connection, new_run_ids(len(new), lane, self._clock.at), new)
        return await self.claim_ready(lane, len(new))

    async def claim_ready(self, lane: int, size: int) -> completions.Completion:
        lease_id = uuid4()
        rows = await leases.claim(
            self.connection,
            lane=lane,
            line=self.line,
            priorities=range(10),
            fronts=[0] * 10,
            count=1000,
            lease_id=lease_id,
            worker_id=self._worker_id,
        )
        assert len(rows) == size
        return completions.Completion(leases.Lease(lane, lease_id, size), [0] * size, [0] * size, [None] * size, [])

    async def complete(self, *whole: completions.Completion) -> None:
        """All of them in one transaction, so at one instant."""
        completed = await completions.complete(self.connection, self._worker_id, whole)
        assert completed.leases == {each.lease.id for each in whole}

    async def grind(self, *groups: tuple[str, int], **claimed: Any) -> None:
        await self.complete(await self.claim(*groups, **claimed))

    async def ended(self, *, job: str | None = None, tags: list[str] | None = None) -> list[UUID]:
        return [row["run_id"] for row in await self.connection.fetch(ENDED, job, tags)]

    async def named(self) -> list[Any]:
        return await self.connection.fetch(NAMED)


@pytest.fixture
async def mill(frozen_app: Mainspring, clock: FrozenClock, database: Database) -> AsyncIterator[Mill]:
    connection = await database.connect("test")
    yield await Mill.open(connection, clock)
    await connection.close()


@pytest.fixture
async def history(mill: Mill, frozen_app: Mainspring, clock: FrozenClock) -> Mill:
    """Batches of one and of several jobs, at one instant and at several, with and without tags; and single rows."""
    await mill.grind(("grind", 12))
    await clock.advance(1)
    both = await mill.claim(("grind", 5), ("sift", 7)), await mill.claim(("grind", 6), lane=4, tags=["x"])
    await mill.complete(*both, await mill.claim(("sift", 1), lane=5))
    await clock.advance(1)
    await mill.grind(("grind", 3), tags=["x", "y"])
    await mill.grind(("grind", 4), tenant=STRANGER)
    for tags in (None, ["x"]):
        [run_id] = new_run_ids(1, 3, clock.at)
        await copy_plain(
            mill.connection, [run_id], [NewRun(DEFAULT_TENANT, mill.jobs["sift"], 1, 1, 5, b"{}", tags=tags)]
        )
        await frozen_app.runs.cancel(run_id, reason="there is enough")
    await clock.advance(1)
    await mill.grind(("grind", 2), ("sift", 2))
    return mill


async def all_pages(app: Mainspring, limit: int, **wanted: Any) -> list[UUID]:
    page = await app.runs.list(limit=limit, **wanted)
    found = [run.id for run in page.runs]
    while page.cursor is not None:
        page = await app.runs.list(limit=limit, cursor=page.cursor, **wanted)
        found += [run.id for run in page.runs]
    return found


# ── how it is written ───────────────────────────────────────────────────────────────────────────────────────────


async def test_the_first_of_a_lease_names_all_its_runs(mill: Mill) -> None:
    await mill.grind(("grind", 10))

    [named] = await mill.named()
    assert sorted(named["covers"]) == sorted(await mill.ended())
    assert sorted([named["head"], *named["others"]]) == sorted(named["covers"])


async def test_of_a_lease_with_several_jobs_one_run_of_each_names_the_others(mill: Mill) -> None:
    await mill.grind(("grind", 5), ("sift", 3))

    named = await mill.named()
    assert sorted(len(each["covers"]) for each in named) == [3, 5]
    assert len({each["job_id"] for each in named}) == 2
    assert all(len(each["others"]) == len(each["covers"]) - 1 for each in named)


async def test_who_is_alone_stands_for_itself(mill: Mill) -> None:
    await mill.grind(("grind", 1))
    await mill.grind(("grind", 2), ("sift", 1))

    alone = await mill.connection.fetchval("select count(*) from attempt where covers is null and is_covered is null")
    assert (alone, len(await mill.named())) == (2, 1)


async def test_only_runs_that_no_filter_tells_apart_are_named_together(mill: Mill, clock: FrozenClock) -> None:
    line, job = mill.line, mill.jobs["grind"]
    kinds: list[tuple[int, list[str] | None]] = [(1, None), (1, ["x"]), (1, ["y"]), (STRANGER, None)]
    new = [NewRun(tenant, job, 1, line, 5, b"{}", tags=tags) for tenant, tags in kinds for _ in range(3)]
    await copy_plain(mill.connection, new_run_ids(len(new), 3, clock.at), new)

    await mill.complete(await mill.claim_ready(3, len(new)))

    named = await mill.named()
    assert sorted(map(repr, kinds)) == sorted(repr((each["tenant_id"], each["tags"])) for each in named)
    assert [(len(each["covers"]), len(each["others"])) for each in named] == [(3, 2)] * 4


# ── how it is read ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.invariant(12)
@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("wanted", "count"), [({}, 40), ({"job": "grind"}, 28), ({"job": "sift"}, 12), ({"tags": ["x"]}, 10)], ids=str
)
async def test_pages_that_end_within_a_batch_are_the_whole_list(
    history: Mill, frozen_app: Mainspring, wanted: dict[str, Any], count: int, limit: int
) -> None:
    found = await all_pages(frozen_app, limit, **wanted)

    assert found == await history.ended(**wanted)
    assert len(found) == count


async def test_a_state_is_asked_of_all_that_a_row_names(history: Mill, frozen_app: Mainspring) -> None:
    assert len((await frozen_app.runs.list(state="succeeded", limit=100)).runs) == 38
    assert len((await frozen_app.runs.list(state="cancelled", limit=100)).runs) == 2


async def test_time_cuts_between_batches(history: Mill, frozen_app: Mainspring, clock: FrozenClock) -> None:
    assert len((await frozen_app.runs.list(since=clock.at - timedelta(seconds=1), limit=100)).runs) == 9
    assert len((await frozen_app.runs.list(until=clock.at - timedelta(seconds=2), limit=100)).runs) == 12


async def test_what_is_shown_of_a_run_is_its_own(mill: Mill, frozen_app: Mainspring) -> None:
    await mill.grind(("grind", 10))
    await mill.connection.execute("update attempt set submitted_by = run_id::text, fence = fence + lane")

    assert {(run.submitted_by, run.fence) for run in (await frozen_app.runs.list()).runs} == {
        (str(run_id), 4) for run_id in await mill.ended()
    }


async def test_an_earlier_attempt_at_the_same_instant_is_not_taken_for_the_end(
    mill: Mill, frozen_app: Mainspring
) -> None:
    """As when a test's clock stands still."""
    await mill.grind(("grind", 5))
    await mill.connection.execute(
        "insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,"
        " state, due_at, codec, submitted_at)"
        " select lane, run_id, 0, 9, tenant_id, job_id, job_version, line_id, priority, 'failed', 'scheduled', due_at,"
        " codec, submitted_at from attempt"
    )

    page = await frozen_app.runs.list()

    assert [run.id for run in page.runs] == await mill.ended()
    assert {run.attempts_spent for run in page.runs} == {1}


async def test_a_scan_gives_up_within_a_batch(
    mill: Mill, frozen_app: Mainspring, monkeypatch: pytest.MonkeyPatch
) -> None:
    await mill.grind(("grind", 10))
    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 10)
    with pytest.raises(FilterTooWide):
        await frozen_app.runs.list(limit=4, tags=["z"])

    monkeypatch.setattr(looking, "ROWS_PER_SCAN", 11)
    assert (await frozen_app.runs.list(limit=4, tags=["z"])).runs == []


async def test_what_people_watch_counts_and_shows_each_run(history: Mill, clock: FrozenClock) -> None:
    window, connection = (clock.at - timedelta(minutes=1), clock.at), history.connection

    counted = await health.finished_between(connection, LANES, *window, tenant_id=DEFAULT_TENANT)
    latest = await health.latest_attempts(connection, LANES, *window, 100, tenant_id=DEFAULT_TENANT)
    late = await health.lateness(connection, 60, 100, tenant_id=DEFAULT_TENANT)

    rows = await connection.fetch("select run_id, recorded_at from attempt order by recorded_at desc")  # of its jobs
    assert sum(row["count"] for row in counted) == len(rows) == 44
    assert {row["run_id"] for row in latest} == {row["run_id"] for row in rows}
    assert [row["recorded_at"] for row in latest] == [row["recorded_at"] for row in rows]
    assert len(late) == 42, "what was cancelled has not started"
    few = await health.latest_attempts(connection, LANES, *window, 3, tenant_id=DEFAULT_TENANT)
    assert {row["recorded_at"] for row in few} == {clock.at}
    assert len(few) == 3
    assert len(await health.lateness(connection, 60, 3, tenant_id=DEFAULT_TENANT)) <= 3 * 2 * 3
