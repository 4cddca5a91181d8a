"""Runs that wait for others: each is released once all have ended as they should, and nobody is forgotten."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import asyncpg
import pytest

from mainspring import Cancel, Context, Limit, Mainspring, RetryPolicy
from mainspring.clock import instant
from mainspring.errors import DatabaseUnreachable, InvalidInput, RunCancelled, RunFailed
from mainspring.keeper.resolver import Resolver
from mainspring.model.dependency import filled_in
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.store import inputs, resolving
from mainspring.store.functions import all_functions
from mainspring.store.notify import Waker
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring import Job
    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection

    Race = Callable[[Mainspring, "Work", str, Connection], Awaitable[Handle[Any]]]

LANES = 8
ONCE = RetryPolicy(max_attempts=1)
NOTHING_TO_LOOK_AT = "if cardinality(picked) = 0 then"


class Work:
    """Jobs that note what they were called with."""

    def __init__(self, app: Mainspring) -> None:
        self.done: list[Any] = []

        @app.job
        async def note(what: Any = None) -> Any:
            self.done.append(what)
            return what

        @app.job(retry=ONCE)
        async def fail(what: str = "") -> None:
            self.done.append(what)
            raise ValueError(what)

        @app.job
        async def add(numbers: list[int], to: int = 0) -> int:
            self.done.append((numbers, to))
            return sum(numbers) + to

        self.note, self.fail, self.add = note, fail, add


@pytest.fixture
def work(app: Mainspring) -> Work:
    return Work(app)


async def state_of(handle: Handle[Any]) -> State:
    return (await handle.find()).state


async def count(connection: asyncpg.Connection[asyncpg.Record], table: str = "dependency") -> int:
    found = await connection.fetchval(f"select count(*) from {table}")  # noqa: S608  names of ours
    return int(found)


async def resolve(connection: Connection, app: Mainspring) -> None:
    """As the keeper does, until there is nothing to tell."""
    resolver = Resolver(lanes=LANES, clock=app.clock, heard_of_gates=lambda _: None)
    while await resolver.step(connection) == 0.0:
        pass


# ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_waits_until_another_one_has_succeeded(app: Mainspring, work: Work) -> None:
    first = await work.note.options(delay=timedelta(minutes=1)).submit("first")
    second = await work.note.options(after=first).submit("second")
    await run_until_idle(app)
    assert (await second.find()).held_for == "parent"

    await first.change(at=instant(app.clock))
    await run_until_idle(app)

    assert work.done == ["first", "second"]


@pytest.mark.invariant(14)
async def test_a_run_waits_for_all_of_several(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    firsts = [await work.note.options(key=f"first {number}").submit(number) for number in range(20)]
    assert len({lane_of(each.id) for each in firsts}) > 1
    last = await work.note.options(after=firsts).submit("last")

    await run_until_idle(app)

    assert work.done[-1] == "last"
    assert len(work.done) == 21
    assert await last.result(timeout=1) == "last"
    assert await count(connection) == 0


async def test_a_run_may_wait_for_one_that_has_ended_long_ago(app: Mainspring, work: Work) -> None:
    first = await work.note.submit("first")
    await run_until_idle(app)

    await work.note.options(after=first).submit("second")
    await run_until_idle(app)

    assert work.done == ["first", "second"]


@pytest.mark.parametrize(
    ("on", "first", "starts"),
    [
        ("success", "note", True),
        ("success", "fail", False),
        ("failure", "note", False),
        ("failure", "fail", True),
        ("end", "note", True),
        ("end", "fail", True),
    ],
)
async def test_a_condition_says_how_the_other_one_has_to_end(
    app: Mainspring, work: Work, on: str, first: str, starts: bool
) -> None:
    job: Job[..., Any] = getattr(work, first)
    second = await work.note.options(after=await job.submit("first"), on=on).submit("second")

    await run_until_idle(app)

    assert ("second" in work.done) is starts
    assert await state_of(second) == (State.SUCCEEDED if starts else State.CANCELLED)


async def test_what_waits_for_a_cancelled_run_is_cancelled_and_so_is_what_waits_for_that(
    app: Mainspring, work: Work
) -> None:
    first = await work.note.options(delay=60).submit("first")
    second = await work.note.options(after=first).submit("second")
    third = await work.note.options(after=second).submit("third")
    anyhow = await work.note.options(after=third, on="end").submit("anyhow")

    await first.cancel(reason="not today")
    await run_until_idle(app)

    assert [await state_of(each) for each in (second, third)] == [State.CANCELLED] * 2
    assert work.done == ["anyhow"]
    assert await state_of(anyhow) is State.SUCCEEDED
    [end] = (await third.find()).attempts
    assert end.error is not None
    assert end.error["code"] == "parent-failed"
    assert str(second.id) in end.error["message"]
    with pytest.raises(RunCancelled):
        await third.result(timeout=1)


async def test_told_to_hold_a_run_waits_until_the_dead_letter_was_requeued_and_succeeds(app: Mainspring) -> None:
    is_mended = False
    done: list[str] = []

    @app.job(retry=ONCE)
    async def first() -> None:
        if not is_mended:
            raise ValueError

    @app.job
    async def second() -> None:
        done.append("second")

    dead = await first.submit()
    held = await second.options(after=dead, otherwise="hold").submit()
    await run_until_idle(app)
    assert await state_of(held) is State.HELD

    is_mended = True
    await app.runs.requeue(dead.id)
    await run_until_idle(app)

    assert done == ["second"]


async def test_a_run_that_is_retried_has_not_ended(app: Mainspring, work: Work) -> None:
    @app.job(retry=RetryPolicy(max_attempts=2, first_delay=timedelta(hours=1)))
    async def flaky(context: Context) -> str:
        if context.attempt == 1:
            raise ValueError
        return "mended"

    first = await flaky.submit()
    second = await work.note.options(after=first).submit("second")
    await run_until_idle(app)

    assert await state_of(second) is State.HELD


async def test_a_due_time_counts_besides(app: Mainspring, work: Work) -> None:
    first = await work.note.submit("first")
    second = await work.note.options(after=first, delay=timedelta(hours=1)).submit("second")

    await run_until_idle(app)

    assert await state_of(second) is State.SCHEDULED


async def test_a_run_goes_on_to_its_limits(app: Mainspring, work: Work) -> None:
    @app.job(limit=Limit(1, key="customer"))
    async def bill(customer: str, number: int) -> None:
        work.done.append((customer, number))

    first = await work.note.submit("first")
    for number in range(3):
        await bill.options(after=first).submit("acme", number)

    await run_until_idle(app)

    assert sorted(work.done[1:]) == [("acme", 0), ("acme", 1), ("acme", 2)]


# ── results ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_results_become_arguments(app: Mainspring, work: Work) -> None:
    two, three = await work.add.submit([1, 1]), await work.add.submit([1, 2])

    whole = await work.add.submit([two.output, 10, three.output], to=two.output)

    await run_until_idle(app)
    assert await whole.result(timeout=1) == 17
    assert (await whole.find()).payload == {"numbers": [2, 10, 3], "to": 2}


async def test_the_other_arguments_are_checked_at_once(app: Mainspring, work: Work) -> None:
    first = await work.add.submit([1])

    with pytest.raises(InvalidInput, match="argument 'to' does not fit"):
        await work.add.submit([first.output], to="ten")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(InvalidInput, match="cannot be called like that"):
        await work.add.submit(first.output, too=1)  # type: ignore[call-arg, arg-type]


async def test_a_result_that_does_not_fit_makes_a_dead_letter_that_says_so(app: Mainspring, work: Work) -> None:
    text = await work.note.submit("text")
    sum_of = await work.add.submit(text.output)

    await run_until_idle(app)

    with pytest.raises(RunFailed, match="numbers"):
        await sum_of.result(timeout=1)


async def test_results_that_are_too_large_together_cancel_the_run(app: Mainspring, work: Work) -> None:
    large = [await work.note.submit("x" * 100_000) for _ in range(3)]
    whole = await work.note.submit([each.output for each in large])

    await run_until_idle(app)

    [end] = (await whole.find()).attempts
    assert end.error is not None
    assert end.error["code"] == "inputs-do-not-fit"


async def test_a_run_under_a_limit_by_a_result_waits_at_it(app: Mainspring, work: Work) -> None:
    @app.job(limit=Limit(1, key="customer"))
    async def bill(customer: str) -> None:
        work.done.append(customer)

    who = await work.note.submit("acme")
    await bill.submit(who.output)

    await run_until_idle(app)

    assert work.done == ["acme", "acme"]


# ── races ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def submitted_before_its_end(app: Mainspring, work: Work, url: str, connection: Connection) -> Handle[Any]:
    """The caller's transaction stays open until the parent is over: whoever ended it saw nobody who waits."""
    first = await work.note.submit("first")
    callers = await asyncpg.connect(url)
    async with callers.transaction():
        second = await work.note.options(after=first, connection=callers).submit("second")
        await run_until_idle(app)
        assert work.done == ["first"]
    await callers.close()
    await run_until_idle(app)
    return second


async def submitted_during_its_end(app: Mainspring, work: Work, url: str, connection: Connection) -> Handle[Any]:
    """The parent's end is not committed yet when somebody looks whether it has ended: that look comes again."""
    first = await work.note.options(delay=60).submit("first")
    ending = connection.transaction()
    await ending.start()
    await connection.fetch(
        "select cancel_runs($1, array[$2::uuid], $3, 'me', '', '{}')", lane_of(first.id), first.id, app.actor.tenant
    )
    second = await work.note.options(after=first, on="end").submit("second")
    await resolve_checks(app)
    await ending.commit()
    await run_until_idle(app)
    assert await state_of(second) is State.HELD
    await connection.execute("update dependency set check_at = check_at - interval '1 second'")  # it is later
    await run_until_idle(app)
    return second


RACES = pytest.mark.parametrize("submitted", [submitted_before_its_end, submitted_during_its_end])


@pytest.mark.invariant(14)
@RACES
async def test_a_parent_may_end_while_its_child_is_submitted(
    app: Mainspring, work: Work, url: str, connection: Connection, submitted: Race
) -> None:
    child = await submitted(app, work, url, connection)

    assert await state_of(child) is State.SUCCEEDED
    assert await count(connection) == 0


@RACES
async def test_where_nobody_looks_for_parents_that_have_ended_such_a_child_is_forgotten(
    app: Mainspring, work: Work, url: str, connection: Connection, submitted: Race
) -> None:
    """The control of the test above."""
    whole = all_functions()["check_dependencies"]
    assert NOTHING_TO_LOOK_AT in whole
    await connection.execute(whole.replace(NOTHING_TO_LOOK_AT, "if true then"))

    child = await submitted(app, work, url, connection)

    assert await state_of(child) is State.HELD
    assert await count(connection) == 1


async def test_a_cancelled_child_is_forgotten(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    first = await work.note.options(delay=1).submit("first")
    second = await work.note.options(after=first).submit("second")
    await second.cancel()

    await first.change(priority=1)
    await first.cancel()
    await run_until_idle(app)

    assert await count(connection) == 0


async def test_a_handler_that_cancels_itself_has_ended(app: Mainspring, work: Work) -> None:
    @app.job
    async def give_up() -> None:
        raise Cancel("no need")

    second = await work.note.options(after=await give_up.submit(), on="end").submit("second")
    await run_until_idle(app)

    assert await state_of(second) is State.SUCCEEDED


async def test_a_hint_is_enough(app: Mainspring, work: Work) -> None:
    """Without a keeper: whoever ends a run sees to those that wait for it."""
    first = await work.note.options(delay=0.0).submit("first")
    async with working(app):
        await first.result(timeout=20)
    chain = await work.note.submit(0)
    links = [chain]
    for number in range(1, 5):
        links.append(await work.note.options(after=links[-1]).submit(number))
    await resolve_checks(app)

    async with working(app):
        assert await links[-1].result(timeout=20) == 4


async def test_a_worker_claims_what_it_has_released_although_no_wake_up_arrives(
    app: Mainspring, work: Work, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it find it by looking: not so soon."""
    monkeypatch.setattr(Waker, "wake", lambda *_: None)
    first = await work.note.submit(1)
    second = await work.note.submit(first.output)
    await resolve(connection, app)

    async with working(app, poll_interval=10):
        assert await second.result(timeout=8) == 1


async def resolve_checks(app: Mainspring) -> None:
    store = (await app.services()).store
    connection = await store.database.connect("test")
    await resolve(connection, app)
    await connection.close()


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_unknown_parent_is_refused_and_nothing_is_submitted(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    first = await work.note.submit("first")

    with pytest.raises(InvalidInput, match="no such run") as caught:
        await work.note.options(after=[first, uuid4()]).submit("second")

    assert caught.value.code == "parent-not-found"
    assert await count(connection) == await count(connection, "held") == 0


async def test_an_unknown_parent_in_a_callers_transaction_spoils_nothing(
    app: Mainspring, work: Work, url: str, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    callers = await asyncpg.connect(url)
    async with callers.transaction():
        with pytest.raises(InvalidInput, match="no such run"):
            await work.note.options(after=uuid4(), connection=callers).submit("second")
        first = await work.note.options(connection=callers).submit("first")
        await work.note.options(after=first, connection=callers).submit("third")
    await callers.close()
    await run_until_idle(app)

    assert work.done == ["first", "third"]


async def test_a_run_is_cancelled_if_one_of_several_fails_wherever_it_is(app: Mainspring, work: Work) -> None:
    """In every lane, with news of success before those of failure, and the other way round."""
    children = []
    for number in range(16):
        bad = await work.fail.options(key=f"bad {number}").submit("bad")
        good = await work.note.options(key=f"good {number}").submit("good")
        children.append(await work.note.options(after=[bad, good]).submit("child"))
        children.append(await work.note.options(after=[good, bad]).submit("child"))

    await run_until_idle(app)

    assert {await state_of(each) for each in children} == {State.CANCELLED}
    assert "child" not in work.done


async def test_bad_news_that_do_not_fit_into_a_transaction_count_as_well(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MOST_NEWS", 2)
    parents = [await work.note.submit(number) for number in range(6)] + [await work.fail.submit("bad")]
    child = await work.note.options(after=parents).submit("child")

    await run_until_idle(app)

    assert await state_of(child) is State.CANCELLED


async def test_who_holds_for_one_parent_is_not_released_by_another(app: Mainspring, work: Work) -> None:
    parents = [await work.note.submit("good"), await work.fail.submit("bad")]
    child = await work.note.options(after=parents, otherwise="hold").submit("child")

    await run_until_idle(app)

    assert await state_of(child) is State.HELD


async def test_a_result_that_history_has_forgotten_is_not_handed_on(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    first = await work.note.submit("first")
    later = await work.note.options(delay=60).submit("later")
    child = await work.note.options(after=later).submit([first.output])
    await run_until_idle(app)
    await connection.execute("delete from attempt where run_id = $1", first.id)

    await later.change(at=instant(app.clock))
    await run_until_idle(app)

    [end] = (await child.find()).attempts
    assert end.error is not None
    assert end.error["code"] == "result-gone"


async def test_what_ended_without_the_results_it_waited_for_is_not_run_again_without_them(
    app: Mainspring, work: Work
) -> None:
    child = await work.note.submit((await work.fail.submit("bad")).output)
    await run_until_idle(app)

    with pytest.raises(InvalidInput) as caught:
        await app.runs.rerun(child.id)
    assert caught.value.code == "arguments-awaited"
    again = await app.runs.rerun(child.id, arguments={"what": "given"})
    await run_until_idle(app)

    assert await again.result(timeout=1) == "given"


async def test_large_results_are_read_a_few_at_a_time(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 150_000)
    large = await work.note.submit("x" * 100_000)
    children = [await work.note.submit(large.output) for _ in range(4)]

    await run_until_idle(app)

    assert {await state_of(each) for each in children} == {State.SUCCEEDED}


async def test_results_of_a_large_group_are_collected_while_it_goes_on(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    flow = app.flow("group")
    members = [flow.add(work.note, number) for number in range(40)]
    slow = flow.add(work.note.options(delay=60), 40)
    total = flow.add(work.add, [each.output for each in [*members, slow]])
    submitted = await flow.submit()
    await run_until_idle(app)

    rows = await connection.fetchval("select count(*) from dependency where child_id = $1", submitted.run(total).id)
    await app.runs.change(submitted.run(slow).id, at=instant(app.clock))
    await run_until_idle(app)

    assert rows < 40 / 2
    assert await submitted.run(total).result(timeout=1) == sum(range(41))
    assert await count(connection) == 0


async def test_what_was_collected_is_too_large_like_anything_else(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    members = await work.note.submit_many([{"what": "x" * 10_000}] * 20)
    slow = await work.note.options(delay=60).submit("x" * 100_000)
    child = await work.note.submit([each.output for each in [*members, slow]])
    await run_until_idle(app)
    assert await connection.fetchval("select count(*) from dependency where results is not null") > 0

    await app.runs.change(slow.id, at=instant(app.clock))
    await run_until_idle(app)

    assert await state_of(child) is State.CANCELLED
    assert "inputs-do-not-fit" in str((await child.find()).attempts[-1].error)


async def test_results_that_go_to_many_places_are_neither_collected_nor_put_together_if_they_cannot_fit(
    app: Mainspring, work: Work, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small submission must not become gigabytes."""
    sizes: list[int] = []

    def weighed(payload: bytes, values: Any) -> bytes | None:
        sizes.append(sum(len(value) for _, value in values))
        return filled_in(payload, values)

    monkeypatch.setattr(inputs, "filled_in", weighed)
    members = await work.note.submit_many([{"what": "x" * 10_000}] * 20)
    slow = await work.note.options(delay=60).submit("")
    many = [each.output for each in members]
    child = await work.note.submit([*many * 50, slow.output])
    await run_until_idle(app)
    assert await connection.fetchval("select count(*) from dependency where results is not null") == 0

    await app.runs.change(slow.id, at=instant(app.clock))
    await run_until_idle(app)

    assert await state_of(child) is State.CANCELLED
    assert "inputs-do-not-fit" in str((await child.find()).attempts[-1].error)
    assert sizes == []


async def test_arguments_that_somebody_changes_while_it_is_released_are_not_lost(
    app: Mainspring, work: Work, connection: Connection, url: str
) -> None:
    parent = await work.note.submit(3)
    child = await work.add.submit([parent.output], to=1)
    other = await asyncpg.connect(url)
    changing = other.transaction()
    await changing.start()
    await other.execute(
        "update mainspring.held set payload = convert_to('{\"numbers\":[0],\"to\":2}', 'UTF8') where id = $1", child.id
    )
    async with working(app):
        await parent.result(timeout=10)
    await resolve(connection, app)
    assert await state_of(child) is State.HELD
    await changing.commit()
    await other.close()

    await run_until_idle(app)

    assert await child.result(timeout=1) == 5


async def test_what_was_collected_is_forgotten_although_its_lane_was_busy(
    app: Mainspring, work: Work, connection: Connection, url: str
) -> None:
    """The news that led to the release are kept until then: they lead back to it."""
    members = await work.note.submit_many([{"what": number} for number in range(20)])
    busy = lane_of(members[0].id)
    others = [await work.note.options(delay=60, key=f"key-{number}").submit(0) for number in range(20)]
    slow = next(each for each in others if lane_of(each.id) != busy)
    child = await work.add.submit([each.output for each in [*members, slow]])
    await run_until_idle(app)
    assert await connection.fetchval("select count(*) from dependency where results is not null") == 1

    other = await asyncpg.connect(url)
    holding = other.transaction()
    await holding.start()
    await other.execute("select from mainspring.lane where lane = $1 for no key update", busy)
    await app.runs.change(slow.id, at=instant(app.clock))
    async with working(app):
        assert await child.result(timeout=10) == sum(range(20))
    await resolve(connection, app)
    assert await count(connection) > 0
    await holding.rollback()
    await other.close()
    await resolve(connection, app)

    assert await count(connection) == 0


async def test_whoever_dies_after_a_release_leaves_nothing_behind(
    app: Mainspring, work: Work, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What led to the release is forgotten after it."""
    parent = await work.note.submit(1)
    child = await work.note.submit(parent.output)

    async def dies(*_: Any) -> None:
        raise DatabaseUnreachable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(resolving, "_forget", dies)
        async with working(app):
            assert await child.result(timeout=10) == 1
    assert await count(connection) > 0
    await resolve(connection, app)

    assert await count(connection) == 0
    assert work.done == [1, 1]


async def test_a_transaction_that_is_open_elsewhere_keeps_nobody_else_waiting(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    """Somebody has taken a parent's row, and does not commit: others of its lane go on."""
    slow, beside = await work.note.options(delay=60).submit_many([{"what": "slow"}, {"what": "beside"}])
    assert lane_of(slow.id) == lane_of(beside.id)
    waiting = await work.note.options(after=slow).submit("waiting")
    going = await work.note.options(after=beside, on="end").submit("going")
    is_open = connection.transaction()
    await is_open.start()
    await connection.fetch("select from later where id = $1 for update", slow.id)

    await beside.cancel()
    await run_until_idle(app)
    assert await state_of(going) is State.SUCCEEDED
    await is_open.rollback()
    assert await state_of(waiting) is State.HELD


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"after": "nonsense"}, "invalid-after"),
        ({"after": []}, "invalid-after"),
        ({"after": uuid4(), "on": "sunday"}, "invalid-on"),
        ({"after": uuid4(), "otherwise": "panic"}, "invalid-otherwise"),
        ({"on": "success"}, "invalid-on"),
    ],
)
async def test_what_makes_no_sense_is_refused(app: Mainspring, work: Work, options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        work.note.options(**options)

    assert caught.value.code == code


async def test_a_result_of_a_run_that_need_not_succeed_is_no_argument(app: Mainspring, work: Work) -> None:
    first = await work.note.submit(1)

    with pytest.raises(InvalidInput) as caught:
        await work.note.options(after=first, on="end").submit(first.output)

    assert caught.value.code == "result-without-success"
