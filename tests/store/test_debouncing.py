"""Debounced runs: the last of a burst wins, as long as nobody has claimed the run that waits."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Debounce, Limit, Mainspring
from mainspring.control import accepting
from mainspring.errors import InvalidInput, OutcomeUnknown
from mainspring.store.connection import transaction
from mainspring.testing import run_until_idle

from .callers import caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

    Save = Job[..., None]

SECOND = timedelta(seconds=1)
COUNT = "select (select count(*) from ready) + (select count(*) from later) + (select count(*) from held)"


class Saves(list[tuple[str, int]]):
    """What was executed."""


@pytest.fixture
def saves() -> Saves:
    return Saves()


def saving(app: Mainspring, saves: Saves, **options: Any) -> Save:
    chosen: dict[str, Any] = {"debounce": Debounce(30, key="document", most_wait=60)} | options

    @app.job(**chosen)  # type: ignore[untyped-decorator]
    async def save(document: str, version: int) -> None:
        saves.append((document, version))

    return save  # type: ignore[no-any-return]


async def test_the_last_of_a_burst_is_executed_once_when_the_burst_is_over(
    frozen_app: Mainspring, clock: FrozenClock, saves: Saves
) -> None:
    save = saving(frozen_app, saves)
    first = await save.submit("a", 1)
    await clock.advance(20 * SECOND)
    again, other = await save.submit("a", 2), await save.submit("b", 1)

    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert again == first
    run = await first.find()
    assert (run.payload, run.revision, run.state) == ({"document": "a", "version": 2}, 1, "scheduled")
    assert run.due_at == clock.at + 30 * SECOND
    await clock.advance(29 * SECOND)
    assert await run_until_idle(frozen_app) == {}
    await clock.advance(SECOND)
    assert await run_until_idle(frozen_app) == {"succeeded": 2}
    assert sorted(saves) == [("a", 2), ("b", 1)]


async def test_a_burst_without_an_end_is_executed_after_the_longest_wait(
    frozen_app: Mainspring, clock: FrozenClock, saves: Saves
) -> None:
    save = saving(frozen_app, saves)
    first = await save.submit("a", 0)
    began = clock.at
    for version in (1, 2, 3):
        await clock.advance(19 * SECOND)
        await save.submit("a", version)
    assert (await first.find()).due_at == began + 60 * SECOND

    await clock.advance(3 * SECOND)
    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert saves == [("a", 3)]
    assert (await save.submit("a", 4)).is_new


async def test_a_run_whose_time_has_come_is_replaced_and_keeps_its_place(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, saves: Saves
) -> None:
    save = saving(frozen_app, saves)
    first = await save.submit("a", 1)
    await frozen_app.queues.pause("default")
    await clock.advance(30 * SECOND)
    await run_until_idle(frozen_app)
    before = await connection.fetchrow("select rank, ready_at, due_at from ready")
    assert before is not None
    await clock.advance(SECOND)

    assert await save.submit("a", 2) == first

    assert await connection.fetchrow("select rank, ready_at, due_at from ready") == before
    await frozen_app.queues.resume("default")
    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert saves == [("a", 2)]


async def test_what_a_run_is_besides_its_arguments_is_replaced_too(
    frozen_app: Mainspring, clock: FrozenClock, saves: Saves
) -> None:
    save = saving(frozen_app, saves)
    first = await save.options(priority=7, tags=["first"]).submit("a", 1)
    submitted_at = (await first.find()).submitted_at
    await clock.advance(SECOND)

    await save.options(priority=2, tags=["second"], max_age=60).submit("a", 2)

    run = await first.find()
    assert (run.priority, run.tags, run.submitted_at) == (2, ["second"], submitted_at)
    assert run.expires_at == clock.at + 90 * SECOND
    assert run.unique_key == "document=a"


async def test_a_run_that_was_claimed_is_left_as_it_is(
    frozen_app: Mainspring, clock: FrozenClock, saves: Saves
) -> None:
    made = []

    @frozen_app.job(debounce=Debounce(30))
    async def save(version: int) -> None:
        if version == 1:
            made.append(await save.submit(version + 1))
        saves.append(("", version))

    first = await save.submit(1)
    await clock.advance(30 * SECOND)
    await run_until_idle(frozen_app)
    assert made[0].is_new
    assert (await first.find()).payload == {"version": 1}

    await clock.advance(30 * SECOND)
    await run_until_idle(frozen_app)
    assert saves == [("", 1), ("", 2)]


async def test_without_a_key_all_runs_of_the_job_are_one(app: Mainspring) -> None:
    @app.job(debounce=Debounce(30))
    async def rebuild(what: str) -> None: ...

    first, again = await rebuild.submit("a"), await rebuild.submit("b")

    assert again == first
    run = await first.find()
    assert (run.payload, run.unique_key) == ({"what": "b"}, "all runs of the job")
    await first.change(arguments={"what": "c"})
    assert (await first.find()).payload == {"what": "c"}


async def test_the_last_of_equal_keys_in_a_batch_wins(frozen_app: Mainspring, saves: Saves, clock: FrozenClock) -> None:
    save = saving(frozen_app, saves)
    handles = await save.submit_many(
        [{"document": "a", "version": 1}, {"document": "b", "version": 1}, {"document": "a", "version": 2}]
    )
    assert [handle.is_new for handle in handles] == [False, True, True]
    assert handles[0] == handles[2]

    await clock.advance(30 * SECOND)
    assert await run_until_idle(frozen_app) == {"succeeded": 2}
    assert sorted(saves) == [("a", 2), ("b", 1)]


async def test_many_at_once_make_one_run_with_the_arguments_of_one_of_them(
    app: Mainspring, connection: Connection, saves: Saves
) -> None:
    save = saving(app, saves)

    handles = await asyncio.gather(*(save.submit("a", version) for version in range(30)))

    assert len({handle.id for handle in handles}) == 1
    assert sum(bool(handle.is_new) for handle in handles) == 1
    assert await connection.fetchval(COUNT) == 1
    assert (await handles[0].find()).revision == 29


async def test_within_a_callers_transaction_it_is_replaced_if_that_commits(
    frozen_app: Mainspring, url: str, saves: Saves
) -> None:
    save = saving(frozen_app, saves)
    first = await save.submit("a", 1)
    for version, ends in ((2, "rollback"), (3, "commit")):
        async with caller("asyncpg", url) as one:
            assert await save.options(connection=one.connection).submit("a", version) == first
            await getattr(one, ends)()

    assert (await first.find()).payload == {"document": "a", "version": 3}


async def test_a_debounced_run_passes_the_limits_of_its_last_arguments(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, saves: Saves
) -> None:
    save = saving(frozen_app, saves, limit=Limit(1, key="version"))
    await save.submit("a", 1)
    await save.submit("a", 2)
    await clock.advance(30 * SECOND)
    await frozen_app.queues.pause("default")
    await run_until_idle(frozen_app)
    await save.submit("a", 3)
    await frozen_app.queues.resume("default")

    assert await run_until_idle(frozen_app) == {"succeeded": 1}
    assert saves == [("a", 3)]
    assert await connection.fetchval("select count(*) from slot") == 0


@pytest.mark.parametrize("knows_itself", [True, False])
async def test_what_replaced_a_run_and_is_sent_again_is_known(
    frozen_app: Mainspring,
    clock: FrozenClock,
    connection: Connection,
    saves: Saves,
    monkeypatch: pytest.MonkeyPatch,
    knows_itself: bool,
) -> None:
    """Its COMMIT went unanswered, and the run was executed meanwhile. The control: else it would be executed twice."""
    save = saving(frozen_app, saves, debounce=Debounce(5, key="document"))
    first = await save.submit("a", 1)
    lost: list[bool] = []

    @asynccontextmanager
    async def losing(on: Connection) -> AsyncIterator[None]:
        async with transaction(on):
            yield
        if not lost:
            lost.append(True)
            await clock.advance(5 * SECOND)
            assert await run_until_idle(frozen_app) == {"succeeded": 1}
            if not knows_itself:
                await connection.execute("update unique_key set submission = gen_random_uuid()")
            raise OutcomeUnknown("The answer to COMMIT was lost.")

    monkeypatch.setattr(accepting, "transaction", losing)
    again = await save.submit("a", 2)

    assert saves == [("a", 2)]
    assert (again == first) == knows_itself
    assert await connection.fetchval(COUNT) == (0 if knows_itself else 1)


async def test_what_does_not_go_with_it_is_refused(app: Mainspring, saves: Saves) -> None:
    save = saving(app, saves)
    for options, code in (
        ({"delay": 5}, "debounce-with-time"),
        ({"key": "k"}, "key-and-unique"),
    ):
        with pytest.raises(InvalidInput) as refused:
            save.options(**options)
        assert refused.value.code == code
    save.options(delay=5, debounce=False)
