"""Backlog caps: how many runs may wait for their first start, and what happens to what comes too much."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from mainspring import Backlog, Limit, Mainspring, Retry, RetryPolicy, Unique
from mainspring.clock import SystemClock
from mainspring.control import accepting
from mainspring.errors import BacklogCapNotFound, BacklogFull, InvalidInput, JobNotFound, OutcomeUnknown, QueueNotFound
from mainspring.keeper.backlog_keeper import BacklogKeeper
from mainspring.keeper.look import Look
from mainspring.model.lifecycle import State
from mainspring.store import backlog_caps, backlog_gates, backlog_tidying
from mainspring.store.connection import transaction
from mainspring.testing import run_until_idle, travel

from .callers import caller

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.handle import Handle
    from mainspring.app.job import Job
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

    Send = Job[..., None]

LANES = 8
COUNT = "select (select count(*) from ready) + (select count(*) from later) + (select count(*) from held)"
ENTRIES = "select count(*) from backlog_entry"
COUNTED = "select coalesce(sum(counted), 0) from backlog_gate"
# As if nobody waited for whoever counts at this moment.
LOCKING = "for update;", ";"
COUNTING = "update backlog_gate set counted", "update backlog_gate set checked"


def sending(app: Mainspring, *caps: Backlog, **options: Any) -> Send:
    @app.job(backlog=caps, **options)  # type: ignore[untyped-decorator]
    async def send(to: str = "ada", again: bool = False) -> None:
        if again:
            raise Retry(after=timedelta(minutes=5))

    return send  # type: ignore[no-any-return]


def keeper_of_backlogs() -> BacklogKeeper:
    return BacklogKeeper(lanes=LANES, look=Look(lanes=LANES, clock=SystemClock()))


async def submitted(send: Send, count: int, **arguments: Any) -> list[Handle[None]]:
    return [await send.submit(**arguments) for _ in range(count)]


@pytest.fixture
async def other_app(url: str) -> AsyncIterator[Mainspring]:
    """Another process."""
    async with Mainspring(url, submitted_by="another process") as app:
        yield app


# ── refusing ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_comes_too_much_is_refused_and_says_why(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(3))
    await submitted(send, 3)

    with pytest.raises(BacklogFull, match="The backlog of job send is full: 3 of at most 3 runs wait") as refused:
        await send.submit()

    assert refused.value.code == "backlog-full"
    assert refused.value.hint is not None
    assert {"cap": "job send", "value": None, "waiting": 3, "most": 3}.items() <= refused.value.fields.items()
    assert await connection.fetchval(COUNT) == 3


async def test_there_is_room_again_when_some_have_started(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(3))
    await submitted(send, 3)
    assert await run_until_idle(frozen_app) == {"succeeded": 3}

    await submitted(send, 3)

    assert await connection.fetchval(COUNT) == await connection.fetchval(ENTRIES) == 3


@pytest.mark.parametrize("end", ["cancelled", "expired"])
async def test_a_run_that_ends_without_a_start_counts_no_more(
    frozen_app: Mainspring, clock: FrozenClock, end: str
) -> None:
    send = sending(frozen_app, Backlog(1))
    first = await send.options(max_age=60).submit()
    if end == "cancelled":
        await first.cancel()
    else:
        await clock.advance(timedelta(seconds=61))
        await run_until_idle(frozen_app)
    assert (await first.find()).state == end

    assert (await send.submit()).is_new


async def test_a_run_that_waits_for_another_attempt_does_not_count(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(1))
    first = await send.submit(again=True)
    await run_until_idle(frozen_app)
    assert (await first.find()).state == "scheduled"

    assert (await send.submit()).is_new


async def test_runs_for_later_and_runs_at_limits_count(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(3), limit=Limit(1))
    await submitted(send, 2)
    await send.options(delay=60).submit()

    with pytest.raises(BacklogFull):
        await send.submit()


async def test_a_run_that_moves_on_and_is_changed_still_counts_once(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(2), queue="mail")
    later = await send.options(delay=60).submit()
    await frozen_app.queues.pause("mail")
    ready = await send.submit()
    await clock.advance(timedelta(seconds=61))
    await run_until_idle(frozen_app)
    await later.change(priority=1)
    await ready.change(arguments={"to": "bob"})
    assert (await later.find()).state == "ready"

    with pytest.raises(BacklogFull):
        await send.submit()
    assert await connection.fetchval(ENTRIES) == 2


async def test_each_value_of_a_key_has_a_cap_of_its_own(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(2, key="to"))
    await submitted(send, 2, to="ada")
    await submitted(send, 2, to="bob")

    with pytest.raises(BacklogFull, match="job send by to=ada is full") as refused:
        await send.submit(to="ada")

    assert refused.value.fields["value"] == "ada"


async def test_several_caps_hold_together(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(2, key="to"), Backlog(5))
    await frozen_app.jobs.submit("send", {"to": "zoe"})
    await frozen_app.backlogs.set(4, queue="default")
    await submitted(send, 2, to="ada")
    with pytest.raises(BacklogFull, match="by to=ada"):
        await send.submit(to="ada")
    await submitted(send, 2, to="bob")

    with pytest.raises(BacklogFull, match="job send is full: 5 of at most 5"):
        await send.submit(to="cid")

    await frozen_app.backlogs.set(9, job="send")
    with pytest.raises(BacklogFull, match="queue default is full: 4 of at most 4"):
        await send.submit(to="cid")
    assert await connection.fetchval(COUNT) == 5


async def test_a_cap_of_all_runs_counts_those_of_all_jobs(frozen_app: Mainspring) -> None:
    send = sending(frozen_app)

    @frozen_app.job(queue="other")
    async def pack() -> None: ...

    await frozen_app.backlogs.set(2)
    await send.submit()
    await pack.submit()

    with pytest.raises(BacklogFull, match="The backlog of tenant is full"):
        await pack.submit()


async def test_runs_without_a_cap_leave_no_trace(frozen_app: Mainspring, connection: Connection) -> None:
    sending(frozen_app, Backlog(1))

    @frozen_app.job
    async def plain() -> None: ...

    handles = await plain.submit_many([{}] * 5)

    assert [handle.backlog for handle in handles] == [None] * 5
    assert await connection.fetchval(ENTRIES) == 0


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_batch_is_accepted_as_a_whole_or_refused(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(5))
    await send.submit_many([{}] * 3)

    with pytest.raises(BacklogFull, match="and 3 more were submitted: none of them was accepted"):
        await send.submit_many([{}] * 3)
    assert await connection.fetchval(COUNT) == 3
    await send.submit_many([{}] * 2)

    assert await connection.fetchval(COUNT) == await connection.fetchval(COUNTED) == 5


async def test_of_singles_that_share_a_commit_as_many_are_accepted_as_fit(
    frozen_app: Mainspring, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(5), Backlog(2, key="to"))
    names = ["ada"] * 3 + ["bob", "cid", "dan", "eva"]

    answers = await asyncio.gather(*(send.submit(to=name) for name in names), return_exceptions=True)

    refused = [name for name, answer in zip(names, answers, strict=True) if isinstance(answer, BacklogFull)]
    assert refused == ["ada", "eva"]
    assert await connection.fetchval(COUNT) == 5


async def test_two_batches_in_opposite_order_do_not_deadlock(app: Mainspring, other_app: Mainspring) -> None:
    one, two = (sending(each, Backlog(2, key="to"), Backlog(1_000)) for each in (app, other_app))
    calls = [{"to": str(number)} for number in range(100)]

    await asyncio.gather(one.submit_many(calls), two.submit_many(calls[::-1]))

    with pytest.raises(BacklogFull):
        await one.submit(to="7")


async def test_nor_do_batches_with_unique_keys(app: Mainspring, other_app: Mainspring, connection: Connection) -> None:
    caps = (Backlog(100), Backlog(1, key="to"))
    one, two = (sending(each, *caps, unique=Unique("to")) for each in (app, other_app))
    calls = [{"to": str(number)} for number in range(100)]

    await asyncio.gather(*(job.submit_many(some) for job, some in ((one, calls), (two, calls[::-1]))))

    assert await connection.fetchval(COUNT) == await connection.fetchval(COUNTED) // 2 == 100


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("locks", [True, False])
async def test_many_who_submit_at_once_never_exceed_the_cap(
    app: Mainspring, other_app: Mainspring, connection: Connection, locks: bool
) -> None:
    """The control: without the lock, they count the same places."""
    if not locks:
        definition = await connection.fetchval("select pg_get_functiondef('take_places'::regproc)")
        await connection.execute(str(definition).replace(*LOCKING).replace(*COUNTING))
    jobs = [sending(each, Backlog(20)) for each in (app, other_app)]

    answers = await asyncio.gather(
        *(job.options(key=f"{job.app.actor.name} {number}").submit() for job in jobs for number in range(20)),
        *(job.submit() for job in jobs for _ in range(20)),
        return_exceptions=True,
    )

    accepted = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert {type(answer) for answer in answers if isinstance(answer, BaseException)} <= {BacklogFull}
    assert len(accepted) == await connection.fetchval(COUNT)
    assert (len(accepted) == 20) is locks


async def test_a_cap_holds_while_runs_come_and_go(app: Mainspring, other_app: Mainspring) -> None:
    jobs = [sending(each, Backlog(10)) for each in (app, other_app)]
    most = accepted = 0
    async with app.running():
        for _ in range(30):
            answers = await asyncio.gather(*(job.submit() for job in jobs for _ in range(8)), return_exceptions=True)
            accepted += sum(not isinstance(answer, BaseException) for answer in answers)
            most = max(most, (await app.backlogs.list())[0].waiting)

    assert most <= 10
    assert accepted > 10, "there was room again and again"


# ── dropping ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("when_full", "gives_way"), [("drop_oldest", [0, 1]), ("replace", [2, 3])])
async def test_a_run_gives_way_and_its_history_says_for_which(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, when_full: str, gives_way: list[int]
) -> None:
    send = sending(frozen_app, Backlog(3, when_full=when_full))
    first: list[Handle[None]] = []
    for _ in range(5):
        await clock.advance(timedelta(seconds=1))
        first.append(await send.submit())

    dropped = [place for place, handle in enumerate(first) if (await handle.find()).state == "cancelled"]
    assert dropped == gives_way
    run = await first[gives_way[0]].find()
    instead = first[3].id
    assert run.attempts[0].error is not None
    assert f"The backlog of job send has at most 3 runs; run {instead} was accepted instead." in str(
        run.attempts[0].error
    )
    audited = await connection.fetchrow(
        "select actor, detail ->> 'instead' as instead from audit where subject = $1", str(run.id)
    )
    assert tuple(audited) == ("backlog of job send", str(instead))
    assert await connection.fetchval(COUNT) == 3


async def test_whoever_waits_for_a_dropped_run_is_told(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(1, key="to", when_full="drop_oldest"))

    @frozen_app.job
    async def report() -> None: ...

    first = await send.submit()
    child = await report.options(after=first).submit()
    await send.submit()
    await run_until_idle(frozen_app)

    assert (await child.find()).state == "cancelled"


async def test_a_run_that_somebody_has_locked_is_passed_over(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(2, when_full="drop_oldest"))
    first = await send.submit()
    await clock.advance(timedelta(seconds=1))
    second = await send.submit()
    async with transaction(connection):
        await connection.execute("select from ready where id = $1 for update", first.id)
        await send.submit()

    assert [(await each.find()).state for each in (first, second)] == ["ready", "cancelled"]


async def test_if_nobody_can_give_way_the_new_one_is_refused(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(1, when_full="replace"))
    await send.submit()
    async with transaction(connection):
        await connection.execute("select from ready for update")
        with pytest.raises(BacklogFull):
            await send.submit()


async def test_a_batch_drops_as_many_as_it_brings_but_not_itself(
    frozen_app: Mainspring, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(3, when_full="drop_oldest"))
    first = await send.submit_many([{}] * 3)
    second = await send.submit_many([{}] * 3)
    with pytest.raises(BacklogFull):
        await send.submit_many([{}] * 4)

    assert {(await each.find()).state for each in first} == {"cancelled"}
    assert {(await each.find()).state for each in second} == {"ready"}


async def test_singles_that_share_a_commit_drop_each_other_in_turn(
    frozen_app: Mainspring, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(3, when_full="drop_oldest"))

    handles = await asyncio.gather(*(send.submit() for _ in range(10)))

    assert await connection.fetchval(COUNT) == 3
    assert sum([(await each.find()).state == "cancelled" for each in handles]) == 7


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_many_singles_at_once_under_a_small_cap_are_all_answered(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(1, when_full="replace"))
    await send.submit()

    handles = await asyncio.gather(*(send.submit() for _ in range(300)))

    states = Counter([(await handle.find()).state for handle in handles])
    assert states == {State.CANCELLED: 299, State.READY: 1}


async def test_a_run_that_was_accepted_before_is_never_refused(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(1))
    first = await send.options(key="order 7").submit()

    assert await send.options(key="order 7").submit() == first
    with pytest.raises(BacklogFull):
        await send.options(key="order 8").submit()
    assert await connection.fetchval("select count(*) from idempotency") == 1, "a refused one leaves no key"


async def test_nor_is_one_whose_unique_key_is_held(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(1), unique=Unique("to"))
    first = await send.submit("ada")

    assert await send.submit("ada") == first
    with pytest.raises(BacklogFull):
        await send.submit("bob")


# ── a COMMIT whose answer was lost ──────────────────────────────────────────────────────────────────────────────


def losing_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[bool] = []

    @asynccontextmanager
    async def losing(connection: Connection) -> AsyncIterator[None]:
        async with transaction(connection):
            yield
        if not lost:
            lost.append(True)
            raise OutcomeUnknown("The answer to COMMIT was lost.")

    monkeypatch.setattr(accepting, "transaction", losing)


@pytest.mark.parametrize("how", ["single", "batch", "key", "unique"])
async def test_runs_whose_commit_went_unanswered_are_found_and_count_once(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    send = sending(frozen_app, Backlog(2), unique=Unique("to") if how == "unique" else None)
    losing_an_answer(monkeypatch)

    if how in ("batch", "unique"):
        await send.submit_many([{"to": "ada"}, {"to": "bob"}])
    else:
        await send.options(key="order 7" if how == "key" else None).submit()
        await send.submit()

    with pytest.raises(BacklogFull):
        await send.submit(to="cid")
    assert await connection.fetchval(COUNT) == await connection.fetchval(COUNTED) == 2


# ── callers' transactions ───────────────────────────────────────────────────────────────────────────────────────


async def test_an_open_transaction_of_a_caller_keeps_nobody_waiting(
    frozen_app: Mainspring, url: str, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(3))
    async with caller("asyncpg", url) as one:
        await send.options(connection=one.connection).submit()
        await submitted(send, 3)
        with pytest.raises(BacklogFull):
            await send.submit()
        await keeper_of_backlogs().step(connection)
        await one.commit()

    assert await connection.fetchval(COUNT) == 4, "a cap can be exceeded by what open transactions add"
    with pytest.raises(BacklogFull, match="4 of at most 3 runs wait"):
        await send.submit()
    assert await run_until_idle(frozen_app) == {"succeeded": 4}
    await submitted(send, 3)


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_a_caller_is_refused_when_the_backlog_is_full_and_may_go_on(
    frozen_app: Mainspring, url: str, connection: Connection, driver: str
) -> None:
    send = sending(frozen_app, Backlog(2))
    first = await send.options(key="order 7").submit()
    await send.submit()
    async with caller(driver, url) as one:
        job = send.options(connection=one.connection)

        async def submit(job: Send) -> Handle[None]:
            return await (asyncio.to_thread(job.submit_sync) if driver == "psycopg" else job.submit())

        with pytest.raises(BacklogFull):
            await submit(job)
        assert await submit(job.options(key="order 7", connection=one.connection)) == first
        await one.commit()

    assert await connection.fetchval(COUNT) == 2


async def test_a_rolled_back_transaction_counts_nothing(
    frozen_app: Mainspring, url: str, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(2))
    async with caller("asyncpg", url) as one:
        await send.options(connection=one.connection).submit_many([{}, {}])
        await one.rollback()

    await submitted(send, 2)

    assert await connection.fetchval(COUNTED) == 2


async def test_what_callers_add_too_much_is_dropped_after_their_commit(
    frozen_app: Mainspring, url: str, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(2, when_full="drop_oldest"))
    async with caller("asyncpg", url) as one:
        handles = await send.options(connection=one.connection).submit_many([{}] * 5)
        await one.commit()
    await keeper_of_backlogs().step(connection)

    assert [(await each.find()).state for each in handles] == ["cancelled"] * 3 + ["ready"] * 2
    assert await connection.fetchval(COUNT) == await connection.fetchval(COUNTED) == 2


# ── told when it is near ────────────────────────────────────────────────────────────────────────────────────────


async def test_whoever_submits_is_told_when_a_cap_is_near(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(10))
    with capture_logs() as logged:
        handles = await submitted(send, 10)

    assert [handle.backlog is not None for handle in handles] == [False] * 8 + [True] * 2
    notice = handles[8].backlog
    assert notice is not None
    assert (notice.cap, notice.waiting, notice.most, notice.utilization) == ("job send", 9, 10, 0.9)
    assert [line["event"] for line in logged].count("a backlog is nearly full") == 1, "and not again for a while"


async def test_runs_that_have_started_make_nothing_look_near(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(10))
    for _ in range(3):
        handles = await send.submit_many([{}] * 7)
        assert [handle.backlog for handle in handles] == [None] * 7
        await run_until_idle(frozen_app)


async def test_of_a_batch_each_is_told_of_its_own(frozen_app: Mainspring, url: str) -> None:
    send = sending(frozen_app, Backlog(4, key="to"))
    calls = [{"to": to} for to in ("ada", "ada", "ada", "ada", "bob")]

    assert [handle.backlog is not None for handle in await send.submit_many(calls)] == [True] * 4 + [False]
    async with caller("asyncpg", url) as one:
        handles = await send.options(connection=one.connection).submit_many([{"to": "cid"}] * 4)
        await one.commit()
    assert handles[0].backlog is not None


# ── large caps ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_large_backlog_that_is_full_is_not_looked_through_again_at_once(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_gates, "LOOKED_AT", LANES)
    send = sending(frozen_app, Backlog(20))
    handles = [*await send.submit_many([{}] * 20)]
    with pytest.raises(BacklogFull):
        await send.submit()
    await handles[19].cancel()
    with pytest.raises(BacklogFull):
        await send.submit()

    await clock.advance(timedelta(seconds=1))
    await send.submit()

    with pytest.raises(BacklogFull):
        await send.submit()
    await handles[0].cancel()
    await send.submit()
    assert await connection.fetchval(COUNT) == 20, "the oldest are looked at in any case"


async def test_nor_is_one_in_which_others_give_way(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog_gates, "LOOKED_AT", LANES)
    send = sending(frozen_app, Backlog(20, when_full="drop_oldest"))
    handles = await send.submit_many([{}] * 20)
    await send.submit()
    await handles[19].cancel()

    await send.submit()
    assert await connection.fetchval(COUNT) == 19, "one gave way although there was room"
    await clock.advance(timedelta(seconds=1))
    await submitted(send, 2)
    assert await connection.fetchval(COUNT) == 20


# ── while it works ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_cap_is_set_changed_and_removed_while_it_works(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    send = sending(frozen_app)
    await send.submit()
    await frozen_app.backlogs.set(2, job="send", reason="slow today")
    await submitted(send, 2)
    with pytest.raises(BacklogFull):
        await send.submit()

    await frozen_app.backlogs.set(3, job="send", when_full="replace", reason="less slow")
    await submitted(send, 2)
    await frozen_app.backlogs.set(1, job="send")
    with pytest.raises(BacklogFull, match="3 of at most 1"):
        await send.submit()
    assert await frozen_app.backlogs.remove(job="send", reason="fast again")
    await submitted(send, 5)

    rows = await connection.fetch("select action, actor, subject, detail ->> 'reason' as reason from audit order by at")
    acts = [tuple(row) for row in rows if row["action"].startswith("backlog.")]
    assert acts == [
        ("backlog.set", "tester", "job send", "slow today"),
        ("backlog.set", "tester", "job send", "less slow"),
        ("backlog.set", "tester", "job send", ""),
        ("backlog.remove", "tester", "job send", "fast again"),
    ]
    assert await frozen_app.backlogs.list() == []


async def test_another_process_knows_a_new_cap_within_a_second(
    app: Mainspring, frozen_app: Mainspring, clock: FrozenClock
) -> None:
    elsewhere = sending(frozen_app)
    await elsewhere.submit()
    await app.backlogs.set(1, job="send")
    await clock.advance(timedelta(seconds=1.01))

    await elsewhere.submit()

    with pytest.raises(BacklogFull):
        await elsewhere.submit()


async def test_what_the_code_declares_takes_effect_once_and_somebody_s_decision_stays(url: str) -> None:
    async with Mainspring(url) as app:
        await sending(app, Backlog(5)).submit()
        [cap] = await app.backlogs.list()
        assert (cap.most, cap.is_declared, cap.is_as_declared) == (5, True, True)
        await app.backlogs.set(7, job="send")
    async with Mainspring(url) as app:
        await sending(app, Backlog(5)).submit()
        assert (await app.backlogs.list())[0].most == 7
    async with Mainspring(url) as app:
        await sending(app, Backlog(6)).submit()
        assert (await app.backlogs.list())[0].most == 6
    async with Mainspring(url) as app:
        await sending(app).submit()
        assert await app.backlogs.list() == []


async def test_a_cap_shows_how_many_wait_for_each_value(frozen_app: Mainspring, clock: FrozenClock) -> None:
    send = sending(frozen_app, Backlog(9, key="to", when_full="drop_oldest"))
    await submitted(send, 2, to="ada")
    first = await send.submit(to="bob")
    await clock.advance(timedelta(seconds=1))
    for _ in range(2):
        await send.submit(to="bob")

    cap, values = await frozen_app.backlogs.show(job="send", key="to")

    assert (cap.waiting, cap.counts_are_exact, cap.when_full) == (5, True, "drop_oldest")
    assert [(each.value, each.waiting) for each in values] == [("bob", 3), ("ada", 2)]
    assert values[0].oldest == first.id


# ── schedules, reruns, flows ────────────────────────────────────────────────────────────────────────────────────


async def test_runs_of_schedules_and_reruns_are_neither_refused_nor_counted(
    frozen_app: Mainspring, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(1))
    await send.submit()
    await run_until_idle(frozen_app)
    waiting = await send.options(delay=timedelta(days=1)).submit()
    over = (await frozen_app.runs.list(state="succeeded")).runs[0]

    await frozen_app.runs.rerun(over.id)
    assert await connection.fetchval(COUNT) == 2
    await send.scheduled("hourly", "every hour").create()
    with pytest.raises(BacklogFull):
        await frozen_app.schedules.trigger("hourly")  # by hand, it is a submission like any other
    fired = await travel(frozen_app, timedelta(hours=1))

    assert [each.state for each in fired] == ["succeeded"]
    assert (await waiting.find()).state == "scheduled"


async def test_a_flow_is_accepted_as_a_whole_or_refused(frozen_app: Mainspring, connection: Connection) -> None:
    send = sending(frozen_app, Backlog(2))
    flow = frozen_app.flow("letters")
    for _ in range(3):
        flow.add(send)
    with pytest.raises(BacklogFull):
        await flow.submit()
    assert await connection.fetchval(COUNT) == 0

    small = frozen_app.flow("letters")
    small.add(send).after(small.add(send))
    await small.submit()

    assert await connection.fetchval(COUNTED) == 2


async def test_a_run_that_awaits_arguments_counts_where_there_is_no_key(frozen_app: Mainspring) -> None:
    send = sending(frozen_app, Backlog(1), Backlog(1, key="to"))

    @frozen_app.job
    async def name() -> str:
        return "ada"

    first = await name.submit()
    await send.submit(to=first.output)

    with pytest.raises(BacklogFull, match="job send is full"):
        await send.submit(to="bob")


# ── keeping ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_backlog_is_looked_through_in_pieces_by_one_keeper(
    frozen_app: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever submits waits no longer than for one of them."""
    monkeypatch.setattr(backlog_tidying, "PIECE", 3)
    send = sending(frozen_app, Backlog(100))
    await send.submit_many([{}] * 20)
    await connection.execute("delete from ready where id in (select id from ready order by id limit 10)")
    await clock.advance(61)
    looked: list[int] = []

    async def noted(*arguments: Any) -> backlog_gates.Cleared:
        looked.append(arguments[-1])
        return await backlog_gates.clear(*arguments)

    monkeypatch.setattr(backlog_tidying, "clear", noted)
    other = await database.connect("another keeper")
    await keeper_of_backlogs().step(connection)
    pieces = len(looked)
    await keeper_of_backlogs().step(other)
    await other.close()

    assert (set(looked), len(looked)) == ({3}, pieces)
    assert pieces >= 20 / 3
    assert await connection.fetchval(ENTRIES) == await connection.fetchval(COUNTED) == 10


async def test_a_count_says_whether_it_is_exact(
    frozen_app: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries whose runs have started are looked at, too."""
    monkeypatch.setattr(backlog_caps, "COUNTED", 5)
    send = sending(frozen_app, Backlog(100))
    await send.submit_many([{}] * 20)
    await connection.execute("update ready set fence = 1 where id in (select id from ready order by id limit 18)")

    (found,) = await frozen_app.backlogs.list()

    assert not found.counts_are_exact


async def test_the_keeper_clears_what_nobody_submits_under_any_more(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    send = sending(frozen_app, Backlog(100, key="to"), retry=RetryPolicy(max_attempts=1))
    await send.submit_many([{"to": str(number)} for number in range(50)])
    await frozen_app.queues.pause("default")
    await frozen_app.queues.resume("default")
    assert await run_until_idle(frozen_app) == {"succeeded": 50}
    left = await send.submit(to="7")
    await clock.advance(timedelta(seconds=61))
    keeper = keeper_of_backlogs()
    while not await keeper.step(connection):
        pass

    assert [row["run_id"] for row in await connection.fetch("select run_id from backlog_entry")] == [left.id]
    assert await connection.fetchval("select count(*) from backlog_gate") == 1
    await frozen_app.backlogs.remove(job="send", key="to")
    await clock.advance(timedelta(seconds=61))
    await keeper.step(connection)
    assert await connection.fetchval(ENTRIES) == 0
    assert await connection.fetchval("select count(*) from backlog_gate") == 0


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_arguments_lack_the_key_is_refused_and_nothing_is_accepted(
    frozen_app: Mainspring, connection: Connection
) -> None:
    @frozen_app.job(backlog=Backlog(3, key="order.customer"))
    async def bill(order: dict[str, str]) -> None: ...

    with pytest.raises(InvalidInput, match=r"counts by order\.customer") as refused:
        await bill.submit_many([{"order": {"customer": "ada"}}, {"order": {}}])

    assert refused.value.code == "backlog-key-fails"
    assert await connection.fetchval(COUNT) == await connection.fetchval(ENTRIES) == 0


async def test_caps_for_what_does_not_exist_are_refused(frozen_app: Mainspring) -> None:
    await sending(frozen_app).submit()
    with pytest.raises(JobNotFound):
        await frozen_app.backlogs.set(3, job="sned")
    with pytest.raises(QueueNotFound):
        await frozen_app.backlogs.set(3, queue="nowhere")
    with pytest.raises(InvalidInput, match="for a job or for a queue"):
        await frozen_app.backlogs.set(3, job="send", queue="default")
    with pytest.raises(BacklogCapNotFound, match="There is no backlog cap for job send"):
        await frozen_app.backlogs.show(job="send")
    with pytest.raises(BacklogCapNotFound):
        await frozen_app.backlogs.remove(job="send")
    assert await frozen_app.backlogs.list() == []
