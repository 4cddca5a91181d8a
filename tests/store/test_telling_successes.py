"""Who waits for many runs that succeed together is told of all at once: no result is missing, nothing left behind."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker
from tests.waiting import SOMEBODY_WAITS, until

from mainspring.clock import instant
from mainspring.keeper.resolver import Resolver
from mainspring.model.ids import lane_of
from mainspring.store import completions, leases
from mainspring.testing import run_until_idle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mainspring import Job, Mainspring
    from mainspring.app.flow import FlowHandle, Node
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

LANES, MEMBERS = 8, 40
NOWHERE = leases.Lease(0, UUID(int=0), 3)  # there is no such lease
ROWS = "select is_news, has_ended, results is not null as has_results from dependency where child_id = $1"
NEWS, COLLECTED, OPEN = (True, False, False), (False, True, True), (False, False, False)
TELL = "select tell_successes($1::smallint, $2::uuid[], $3::bytea[])"
WAIT = """
    insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise, inputs)
    select 0, parent, $2, '{0}', $3, $4, '[["what"]]' from unnest($1::uuid[]) as parent
"""


class Work:
    def __init__(self, app: Mainspring) -> None:
        @app.job
        async def note(what: Any = None) -> Any:
            return what

        self.note = note


@pytest.fixture
def work(app: Mainspring) -> Work:
    return Work(app)


@pytest.fixture
async def other(database: Database) -> AsyncIterator[Connection]:
    connection = await database.connect("other")
    yield connection
    await connection.close()


class Group:
    """Members that somebody executes in one lease, and a child that waits for them and for a slow run."""

    def __init__(self, submitted: FlowHandle, members: Sequence[Node[Any]], slow: Node[Any], child: Node[Any]) -> None:
        self.members = [submitted.run(each).id for each in members]
        self.slow, self.child = submitted.run(slow), submitted.run(child)
        self.lane = lane_of(self.child.id)

    async def claim(self, connection: Connection, *, returns: bool = True) -> tuple[UUID, completions.Completion]:
        """All of them by one worker; each returns its number."""
        worker_id, lease_id = await registered_worker(connection), uuid4()
        line = await connection.fetchval("select line_id from ready where id = $1", self.members[0])
        rows = await leases.claim(
            connection,
            lane=self.lane,
            line=line,
            priorities=range(10),
            fronts=[0] * 10,
            count=1000,
            lease_id=lease_id,
            worker_id=worker_id,
        )
        numbers = {run_id: str(number).encode() for number, run_id in enumerate(self.members)}
        results = [numbers[row["id"]] if returns else None for row in rows]
        zeros = [0] * len(rows)
        lease = leases.Lease(self.lane, lease_id, len(rows))
        return worker_id, completions.Completion(lease, zeros, zeros, results, [])

    async def end(self, connection: Connection, *, returns: bool = True) -> completions.Completed:
        worker_id, whole = await self.claim(connection, returns=returns)
        return await completions.complete(connection, worker_id, [whole])

    async def rows(self, connection: Connection) -> list[tuple[bool, bool, bool]]:
        return sorted(tuple(row) for row in await connection.fetch(ROWS, self.child.id))


async def grouped(app: Mainspring, job: Job[..., Any], *, with_results: bool = True) -> Group:
    flow = app.flow("group")
    members = [flow.add(job, number) for number in range(MEMBERS)]
    slow = flow.add(job.options(delay=3600), 1000)
    all_of_them = [*members, slow]
    child = flow.add(job, [each.output for each in all_of_them] if with_results else "no results").after(*all_of_them)
    return Group(await flow.submit(), members, slow, child)


async def resolve(connection: Connection, app: Mainspring) -> None:
    """As the keeper does, until there is nothing to tell."""
    resolver = Resolver(lanes=LANES, clock=app.clock, heard_of_gates=lambda _: None)
    while await resolver.step(connection) == 0.0:
        pass


async def result_after_slow(group: Group, app: Mainspring) -> Any:
    await app.runs.change(group.slow.id, at=instant(app.clock))
    await run_until_idle(app)
    return await group.child.result(timeout=1)


async def left(connection: Connection) -> int:
    return int(await connection.fetchval("select count(*) from dependency"))


# ── together ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_many_that_succeed_together_are_told_by_one_row_and_their_results_kept_in_another(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    group = await grouped(app, work.note)

    told = (await group.end(connection)).told

    assert told == {group.lane}
    assert await group.rows(connection) == sorted([NEWS, COLLECTED, OPEN])


async def test_each_result_comes_to_its_place_and_nothing_is_left(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    group = await grouped(app, work.note)
    await group.end(connection)
    await resolve(connection, app)
    assert await group.rows(connection) == sorted([COLLECTED, OPEN])

    assert await result_after_slow(group, app) == [*range(MEMBERS), 1000]
    assert await left(connection) == 0


async def test_those_who_return_nothing_are_told_of_as_well(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    group = await grouped(app, work.note)
    await group.end(connection, returns=False)

    assert await result_after_slow(group, app) == [*[None] * MEMBERS, 1000]


async def test_who_waits_without_wanting_results_keeps_none(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    group = await grouped(app, work.note, with_results=False)
    await group.end(connection)
    rows = await group.rows(connection)

    assert len(rows) == 3
    assert COLLECTED not in rows
    assert await result_after_slow(group, app) == "no results"
    assert await left(connection) == 0


async def test_where_one_of_the_leases_was_not_ours_any_more_nobody_gets_the_results_of_others(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    """Those that were sent do not stand where those stand that were completed."""
    group = await grouped(app, work.note)
    worker_id, whole = await group.claim(connection)
    stale = completions.Completion(NOWHERE._replace(lane=group.lane), [0] * 3, [0] * 3, [b"-1"] * 3, [])

    found = await completions.complete(connection, worker_id, [stale, whole])

    assert found.leases == {whole.lease.id}
    assert await result_after_slow(group, app) == [*range(MEMBERS), 1000]


async def test_what_was_collected_is_no_news_when_the_end_of_its_run_is_told_again(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    """As it is of runs that have slots, or belong to a schedule: else all places would get the result of one."""
    group = await grouped(app, work.note)
    worker_id, whole = await group.claim(connection)

    await completions.complete(connection, worker_id, [whole._replace(special=group.members)])

    assert await group.rows(connection) == sorted([NEWS, COLLECTED, OPEN])
    assert await result_after_slow(group, app) == [*range(MEMBERS), 1000]


# ── one by one ──────────────────────────────────────────────────────────────────────────────────────────────────


async def rows_after(
    connection: Connection,
    *,
    count: int = MEMBERS,
    size: int = 1,
    children: int = 1,
    condition: str = "success",
    otherwise: str = "cancel",
) -> list[tuple[bool, bool, bool]]:
    """What is left when so many runs have succeeded for which children wait."""
    parents = [uuid4() for _ in range(count)]
    for child in [uuid4() for _ in range(children)]:
        await connection.execute(WAIT, parents, child, condition, otherwise)
    await connection.execute(TELL, 0, parents, [b"x" * size] * count)
    return sorted(
        tuple(row) for row in await connection.fetch("select is_news, has_ended, results is not null from dependency")
    )


async def test_a_few_are_told_one_by_one(connection: Connection) -> None:
    assert await rows_after(connection, count=15) == [NEWS] * 15


async def test_from_sixteen_on_they_are_told_together(connection: Connection) -> None:
    assert await rows_after(connection, count=16) == sorted([NEWS, COLLECTED])


@pytest.mark.parametrize(("condition", "otherwise"), [("failure", "cancel"), ("success", "fail")])
async def test_who_waits_for_failures_or_for_its_children_is_told_of_each(
    connection: Connection, condition: str, otherwise: str
) -> None:
    rows = await rows_after(connection, condition=condition, otherwise=otherwise)

    assert rows == [NEWS] * MEMBERS


async def test_what_is_too_large_to_become_arguments_is_not_collected(connection: Connection) -> None:
    assert await rows_after(connection, count=16, size=16 * 1024) == sorted([NEWS, COLLECTED])
    await connection.execute("delete from dependency")

    assert await rows_after(connection, count=16, size=16 * 1024 + 1) == [NEWS] * 16


async def test_one_transaction_collects_no_more_than_a_few_megabytes(connection: Connection) -> None:
    rows = await rows_after(connection, count=16, size=16 * 1024, children=31)

    assert rows.count(COLLECTED) == 30  # of a quarter of a megabyte each
    assert rows.count(NEWS) == 30 + 16


async def test_runs_for_which_many_children_wait_are_told_one_by_one(connection: Connection) -> None:
    """To look each child up among the rows of all would take as long as the square of their number."""
    assert await rows_after(connection, count=16, children=32) == sorted([NEWS, COLLECTED] * 32)
    await connection.execute("delete from dependency")

    assert await rows_after(connection, count=16, children=33) == [NEWS] * (16 * 33)


# ── meanwhile ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_who_is_cancelled_while_others_succeed_leaves_nothing_behind(
    app: Mainspring, work: Work, connection: Connection, other: Connection
) -> None:
    group = await grouped(app, work.note)
    async with other.transaction():
        await group.end(other)
        await app.runs.cancel(group.child.id)
        await app.runs.cancel(group.slow.id)
        await resolve(connection, app)  # passes over what they have
    await resolve(connection, app)

    assert await left(connection) == 0


async def test_who_is_forgotten_while_others_wait_to_tell_it_leaves_nothing_behind(
    app: Mainspring, work: Work, connection: Connection, other: Connection
) -> None:
    """Somebody forgets the first row and passes over those that are being told: these have to lead to it again."""
    group = await grouped(app, work.note)
    worker_id, whole = await group.claim(other)
    await app.runs.cancel(group.child.id)
    async with connection.transaction():
        await connection.execute(
            "delete from dependency where parent_id = any ($1)", [min(group.members), group.slow.id]
        )
        ending = asyncio.create_task(completions.complete(other, worker_id, [whole]))
        await until(lambda: connection.fetchval(SOMEBODY_WAITS))
    await ending
    await resolve(connection, app)

    assert await left(connection) == 0


async def test_a_transaction_that_is_rolled_back_has_told_nobody(
    app: Mainspring, work: Work, connection: Connection, other: Connection
) -> None:
    group = await grouped(app, work.note)
    trying = other.transaction()
    await trying.start()
    await group.end(other)
    await trying.rollback()
    assert await group.rows(connection) == [OPEN] * (MEMBERS + 1)

    assert await result_after_slow(group, app) == [*range(MEMBERS), 1000]
