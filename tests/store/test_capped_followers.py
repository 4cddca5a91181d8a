"""Runs that nobody submits by hand, in backlogs with caps: what follows from others, and the children of handlers."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import After, Backlog, Mainspring, RetryPolicy
from mainspring.errors import BacklogFull, DatabaseBusy
from mainspring.keeper.follower import Follower
from mainspring.model.lifecycle import State
from mainspring.store import backlog, triggering
from mainspring.testing import run_until_idle

from .test_backlogs import keeper_of_backlogs
from .working import working

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.app.job import Job
    from mainspring.store.connection import Connection

    End = Callable[..., Awaitable[None]]

LANES = 8
LATER = timedelta(days=1)
ONCE = RetryPolicy(max_attempts=1)
WAITING = "select count(*) from ready"
ENTRIES = "select count(*) from backlog_entry"
UNCOUNTED = "select count(*) from backlog_addition"
COUNTED = "select coalesce(sum(counted), 0) from backlog_gate"


class Letters:
    """Names are loaded, and a letter is sent after each of them."""

    def __init__(self, app: Mainspring, *caps: Backlog, result: str | None = "to") -> None:
        @app.job
        async def load(name: str = "ada") -> str:
            return name

        @app.job(after=After("load", result=result), backlog=caps)
        async def send(to: str = "nobody") -> None: ...

        self.load: Job[..., str] = load
        self.send: Job[..., None] = send


@pytest.fixture
def end(app: Mainspring, monkeypatch: pytest.MonkeyPatch) -> End:
    """Let runs end, and nothing follow from it for the time being."""

    async def nothing(*_: Any) -> triggering.Triggered:
        return triggering.NOTHING

    async def end(load: Job[..., str], *names: str) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(triggering, "trigger", nothing)
            async with working(app):
                for name in names:
                    await (await load.submit(name)).result(timeout=10)

    return end


async def follow(app: Mainspring, connection: Connection) -> None:
    """As the keeper does, until there is nothing to submit."""
    follower = Follower(lanes=LANES, clock=app.clock)
    while await follower.step(connection) == 0.0:
        pass


# ── what follows from others ────────────────────────────────────────────────────────────────────────────────────


async def test_runs_that_follow_from_others_count(app: Mainspring, connection: Connection, end: End) -> None:
    letters = Letters(app, Backlog(3))
    await end(letters.load, "ada", "bob")
    await follow(app, connection)
    assert await connection.fetchval(ENTRIES) == await connection.fetchval(UNCOUNTED) == 2

    await letters.send.submit()

    with pytest.raises(BacklogFull, match="job send is full: 3 of at most 3 runs wait"):
        await letters.send.submit()
    assert await connection.fetchval(COUNTED) == await connection.fetchval(WAITING) == 3


async def test_none_of_them_is_refused(app: Mainspring, connection: Connection, end: End) -> None:
    letters = Letters(app, Backlog(1))
    await letters.send.options(delay=LATER).submit()
    await end(letters.load, "ada", "bob")
    await follow(app, connection)

    assert await connection.fetchval(WAITING) == 2
    with pytest.raises(BacklogFull, match="3 of at most 1 runs wait"):
        await letters.send.submit()


@pytest.mark.parametrize("when_full", ["drop_oldest", "replace"])
async def test_what_is_too_much_is_dropped_where_others_give_way(
    app: Mainspring, connection: Connection, end: End, when_full: str
) -> None:
    letters = Letters(app, Backlog(2, when_full=when_full))
    await end(letters.load, *("ada",) * 5)
    await follow(app, connection)
    assert await connection.fetchval(WAITING) == 5

    await keeper_of_backlogs().step(connection)

    assert len((await app.runs.list(job="send", state="cancelled")).runs) == 3
    assert await connection.fetchval(COUNTED) == await connection.fetchval(WAITING) == 2


async def test_they_count_by_the_value_of_their_key(app: Mainspring, connection: Connection, end: End) -> None:
    letters = Letters(app, Backlog(2, key="to"))
    await end(letters.load, "ada", "ada", "bob")
    await follow(app, connection)

    await letters.send.submit("bob")
    with pytest.raises(BacklogFull, match="job send by to=ada is full"):
        await letters.send.submit("ada")


async def test_those_that_lack_the_key_count_where_there_is_none(
    app: Mainspring, connection: Connection, end: End
) -> None:
    letters = Letters(app, Backlog(5), Backlog(5, key="to"), result=None)
    await end(letters.load, "ada")
    await follow(app, connection)

    assert await connection.fetchval(WAITING) == 1
    gates = [row["gate"] for row in await connection.fetch("select gate from backlog_entry")]
    assert [":" in gate for gate in gates] == [False]


async def test_a_cap_that_somebody_sets_on_their_queue_counts_them(
    app: Mainspring, connection: Connection, end: End
) -> None:
    letters = Letters(app)
    await end(letters.load, "ada")
    await app.backlogs.set(1, queue="default")
    await follow(app, connection)

    with pytest.raises(BacklogFull, match="queue default is full"):
        await letters.send.submit()


async def test_two_that_submit_at_once_count_each_run_once(app: Mainspring, connection: Connection, end: End) -> None:
    letters = Letters(app, Backlog(100))
    await end(letters.load, *("ada",) * 10)
    store = (await app.services()).store
    others = [await store.database.connect("other") for _ in range(4)]

    async def all_lanes(own: Connection) -> None:
        for lane in range(LANES):
            await triggering.trigger(own, lane, LANES)

    await asyncio.gather(*map(all_lanes, others))
    for each in others:
        await each.close()

    assert [await connection.fetchval(each) for each in (WAITING, ENTRIES, UNCOUNTED)] == [10, 10, 10]


async def test_what_cannot_be_entered_is_not_submitted_and_waits(
    app: Mainspring, connection: Connection, end: End, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = Letters(app, Backlog(3))
    await end(letters.load, "ada")

    async def fails(*_: Any) -> None:
        raise DatabaseBusy("The lane of the gate is away.")

    with monkeypatch.context() as patched:
        patched.setattr(backlog, "enter_uncounted", fails)
        with pytest.raises(DatabaseBusy):
            await follow(app, connection)
    assert await connection.fetchval(WAITING) == 0

    await follow(app, connection)
    assert [await connection.fetchval(each) for each in (WAITING, ENTRIES, UNCOUNTED)] == [1, 1, 1]


async def test_without_a_cap_they_leave_no_trace(app: Mainspring, connection: Connection, end: End) -> None:
    letters = Letters(app)
    await end(letters.load, "ada")
    await follow(app, connection)

    assert [await connection.fetchval(each) for each in (WAITING, ENTRIES, UNCOUNTED)] == [1, 0, 0]


# ── children ────────────────────────────────────────────────────────────────────────────────────────────────────


class Album:
    """A handler that submits children, in one batch or one by one."""

    def __init__(self, app: Mainspring, cap: Backlog) -> None:
        self.refusals: list[BacklogFull] = []

        @app.job(backlog=cap)
        async def resize(picture: int = 0) -> int:
            return picture

        @app.job(retry=ONCE)
        async def at_once(count: int) -> int:
            try:
                await resize.options(child=True).submit_many({"picture": number} for number in range(count))
            except BacklogFull as error:
                self.refusals.append(error)
                raise
            return count

        @app.job(retry=RetryPolicy(max_attempts=2, first_delay=timedelta(hours=1)))
        async def one_by_one(count: int) -> int:
            for number in range(count):
                await resize.options(child=True, delay=LATER).submit(number)
            return count

        self.resize, self.at_once, self.one_by_one = resize, at_once, one_by_one


async def test_children_that_a_cap_refuses_are_an_error_in_their_handler_and_leave_nothing(
    app: Mainspring, connection: Connection
) -> None:
    album = Album(app, Backlog(3))
    handle = await album.at_once.submit(4)
    await run_until_idle(app)

    found = await handle.find()
    assert (found.state, len(found.children)) == (State.DEAD, 0)
    [refusal] = album.refusals
    assert "job resize is full: 0 of at most 3 runs wait, and 4 more were submitted: none of them" in str(refusal)
    assert found.attempts[-1].error is not None
    assert found.attempts[-1].error["code"] == "backlog-full"
    for table in ("ready", "held", "dependency", "idempotency", "backlog_entry"):
        assert await connection.fetchval(f"select count(*) from {table}") == 0  # noqa: S608  names of ours


async def test_children_count(app: Mainspring, connection: Connection) -> None:
    album = Album(app, Backlog(3))

    @app.job(retry=ONCE)
    async def patient() -> None:
        await album.resize.options(child=True, delay=LATER).submit_many([{}, {}])

    await patient.submit()
    await run_until_idle(app)
    assert await connection.fetchval(ENTRIES) == 2

    await album.resize.submit()
    with pytest.raises(BacklogFull, match="3 of at most 3"):
        await album.resize.submit()


async def test_a_handler_that_was_refused_a_child_finds_the_others_when_there_is_room(
    app: Mainspring, connection: Connection
) -> None:
    album = Album(app, Backlog(2))
    handle = await album.one_by_one.submit(3)
    await run_until_idle(app)
    assert [child.state for child in (await handle.find()).children] == [State.SCHEDULED] * 2
    # The children start; then the handler runs again; then the child that it lacked starts.
    for whose in ("headers ? '@child_of'", "true", "true"):
        await connection.execute(f"update later set due_at = clock_now() where {whose}")  # noqa: S608  words of ours
        await run_until_idle(app)

    found = await handle.find()
    assert [child.name for child in found.children] == ["resize#00001", "resize#00002", "resize#00003"]
    assert found.attempts[0].error is not None
    assert (found.state, found.attempts[0].error["code"]) == (State.SUCCEEDED, "backlog-full")
