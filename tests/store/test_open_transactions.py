"""A caller's transaction stays open, with runs in it that are under limits, wait for others, or have ended.

Nobody waits for it: while it is open, other work of every kind begins and ends, also under the same limits and in the
same lane. There is no waiting for a while: what ends, ends while the transaction is open.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import SOMEBODY_WAITS, until

from mainspring import Context, Limit, Mainspring, RetryPolicy, Unique
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.store.admission import admit
from mainspring.store.functions import all_functions

from .callers import caller
from .test_resolving_races import key_in
from .working import working

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection

LANES, LANE = 8, 5
AT_FIRST = "if objection is not null then"  # in a submission
AT_ONCE = RetryPolicy(max_attempts=2, first_delay=timedelta(milliseconds=10))


class Jobs:
    """One of each kind."""

    def __init__(self, app: Mainspring, url: str) -> None:
        self.app = app
        self.may_finish = asyncio.Event()
        self.may_commit = asyncio.Event()
        self.has_finished = asyncio.Event()

        @app.job
        async def plain(what: Any = None) -> Any:
            return what

        @app.job(limit=Limit(1, key="customer"))
        async def limited(customer: str) -> str:
            return customer

        @app.job(limit=Limit(1, order="strict"), retry=AT_ONCE)
        async def strict(context: Context) -> int:
            if context.attempt == 1:
                raise ValueError("once more")
            return context.attempt

        @app.job(limit=Limit(rate="1000/s", burst=10))
        async def rated() -> None: ...

        @app.job(unique=Unique("customer"))
        async def unique(customer: str) -> str:
            return customer

        @app.job(delivery="transactional")
        async def transactional(context: Context) -> None:
            """Finishes its run, and goes on for as long as it likes."""
            await self.may_finish.wait()
            connection = await asyncpg.connect(url)
            async with connection.transaction():
                await context.finish(connection, "done")
                self.has_finished.set()
                await self.may_commit.wait()
            await connection.close()

        self.plain, self.limited, self.strict, self.rated = plain, limited, strict, rated
        self.unique, self.transactional = unique, transactional

    async def submit_one_of_each(self, parent: Handle[Any], **options: Any) -> list[Handle[Any]]:
        """Under the same limits and after the same run, whoever submits them; unique by another key."""
        whose = "caller" if options else "others"
        return [
            await self.plain.options(**options).submit(whose),
            await self.limited.options(**options).submit("acme"),
            await self.strict.options(**options).submit(),
            await self.rated.options(**options).submit(),
            await self.unique.options(**options).submit(whose),
            await self.plain.options(after=parent, **options).submit("after"),
            await self.limited.options(after=parent, **options).submit("acme"),
            await self.plain.options(key=f"key of {whose}", **options).submit(),
            await self.plain.options(delay=0.05, **options).submit("later"),
        ]


@pytest.fixture
def jobs(app: Mainspring, url: str) -> Jobs:
    return Jobs(app, url)


async def ended(handles: list[Handle[Any]]) -> None:
    for handle in handles:
        await handle.result(timeout=None)


@pytest.mark.invariant(13)
@pytest.mark.invariant(14)
async def test_while_a_caller_s_submissions_are_not_committed_others_of_every_kind_begin_and_end(
    app: Mainspring, jobs: Jobs, url: str, connection: asyncpg.Connection[Any]
) -> None:
    parent = await jobs.plain.submit("parent")
    async with working(app, keeper=True, slots=20), caller("asyncpg", url) as one:
        theirs = await jobs.submit_one_of_each(parent, connection=one.connection)
        ours = [parent, *await jobs.submit_one_of_each(parent), *await jobs.submit_one_of_each(parent)]
        await ended(ours)
        waiting = await jobs.limited.options(delay=3600).submit("acme")
        await waiting.change(priority=1)
        await waiting.cancel()
        await app.limits.set(2, job="limited", key="customer", reason="while it is open")
        assert await connection.fetchval("select count(*) from slot") == 0
        await one.commit()
        await ended(theirs)

    assert {(await each.find()).state for each in (*ours, *theirs)} == {State.SUCCEEDED}


async def test_submissions_that_locked_gates_would_keep_others_waiting_there(
    app: Mainspring, jobs: Jobs, url: str, connection: Connection
) -> None:
    """The control of the test above: whoever submits takes the lock that releasing takes, until COMMIT."""
    whole = all_functions()["submit_runs"]
    assert whole.count(AT_FIRST) == 1
    locking = "perform from lane where lane.lane = submit_runs.lane for no key update skip locked;"
    await connection.execute(whole.replace(AT_FIRST, f"{locking} {AT_FIRST}"))
    async with caller("asyncpg", url) as one:
        theirs = await jobs.limited.options(connection=one.connection).submit("acme")
        async with working(app, keeper=True, slots=20):
            ours = await jobs.limited.submit("acme")
            await ended([await jobs.plain.submit()])  # what waits at no gate goes on
        gate = await connection.fetchval("select gate from held")

        assert (await admit(connection, [gate], LANES)).busy == {gate}  # nobody else is at it any more
        assert (await ours.find()).state is State.HELD
        await one.commit()
    async with working(app, keeper=True, slots=20):
        await ended([theirs, ours])


@asynccontextmanager
async def one_that_has_finished_and_does_not_commit(jobs: Jobs) -> AsyncIterator[Handle[Any]]:
    """A run for which another one waits; answers with that."""
    parent = await jobs.transactional.options(key=key_in(LANE, "transactional")).submit()
    child = await jobs.plain.options(after=parent).submit("child")
    jobs.may_finish.set()
    await jobs.has_finished.wait()
    yield child
    jobs.may_commit.set()
    await child.result(timeout=None)


async def it_is_time_to_look(connection: asyncpg.Connection[Any]) -> None:
    """Somebody would look whether the run is still there, for which another one waits."""
    await until(lambda: connection.fetchval("select exists (select from dependency where check_at < clock_now())"))


@pytest.mark.invariant(14)
async def test_while_a_handler_s_own_transaction_is_open_others_of_its_lane_are_released(
    app: Mainspring, jobs: Jobs, connection: asyncpg.Connection[Any]
) -> None:
    async with working(app, keeper=True, slots=20), one_that_has_finished_and_does_not_commit(jobs):
        await it_is_time_to_look(connection)
        parent = await jobs.plain.options(key=key_in(LANE, "parent")).submit("parent")
        assert lane_of(parent.id) == LANE
        await ended([parent, *await jobs.submit_one_of_each(parent)])


async def test_whoever_did_not_pass_over_it_would_keep_its_lane_locked(
    app: Mainspring, jobs: Jobs, connection: asyncpg.Connection[Any]
) -> None:
    """The control of the test above."""
    waits = all_functions()["check_dependencies"].replace("for update skip locked", "for update")
    await connection.execute(waits)
    async with working(app, keeper=True, slots=20), one_that_has_finished_and_does_not_commit(jobs):
        await it_is_time_to_look(connection)
        await until(lambda: connection.fetchval(SOMEBODY_WAITS))
        lane = "select lane from lane where lane = $1 for no key update skip locked"

        assert await connection.fetchval(lane, LANE) is None
