"""Handlers that submit children: their runs end when all of these have, and not before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import asyncpg
import pytest
from tests.waiting import until

from mainspring import Cancel, Context, Limit, Mainspring, Retry, RetryPolicy, RunFilter, Unique
from mainspring.errors import (
    IdempotencyConflict,
    InvalidInput,
    LeaseLost,
    RunAlreadyStarted,
    RunCancelled,
    RunFailed,
    ValueNotStorable,
)
from mainspring.model import fan_out
from mainspring.model.admission import Gate
from mainspring.model.ids import lane_of
from mainspring.model.lifecycle import State
from mainspring.store import fan_outs, resolving, runs, workers
from mainspring.testing import inline, run_until_idle

from .working import working

if TYPE_CHECKING:
    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection

LANES = 8
ONCE = RetryPolicy(max_attempts=1)
AT_ONCE = RetryPolicy(max_attempts=3, first_delay=timedelta(0))
LATER = timedelta(minutes=1)
PATIENCE = 60.0


@dataclass
class Item:
    number: int


class Work:
    """Jobs that note what they were called with."""

    def __init__(self, app: Mainspring) -> None:
        self.app = app
        self.done: list[Any] = []
        self.broken: set[Any] = set()  # parts that fail

        @app.job(retry=ONCE)
        async def part(number: Any = 0) -> Any:
            self.done.append(number)
            if number in self.broken:
                raise ValueError(number)
            return number

        @app.job(retry=ONCE)
        async def whole(count: int = 3, delay: float | None = None, may_fail: bool | None = None) -> int:
            job = part.options(child=True, delay=delay, may_fail=may_fail)
            await job.submit_many({"number": number} for number in range(count))
            self.done.append("whole")
            return count

        self.part, self.whole = part, whole


@pytest.fixture
def work(app: Mainspring) -> Work:
    return Work(app)


async def state_of(handle: Handle[Any]) -> State:
    return (await handle.find()).state


async def count(connection: asyncpg.Connection[asyncpg.Record], table: str = "dependency") -> int:
    found = await connection.fetchval(f"select count(*) from {table}")  # noqa: S608  names of ours
    return int(found)


# ── joining ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_ends_when_its_children_have(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    whole = await work.whole.submit(count=3, delay=60)
    await run_until_idle(app)
    waiting = await whole.find()
    assert (waiting.state, waiting.held_for, waiting.expires_at) == (State.HELD, "children", None)
    assert work.done == ["whole"]

    await connection.execute("update later set due_at = clock_now()")
    await run_until_idle(app)

    found = await whole.find()
    assert sorted(work.done[1:]) == [0, 1, 2]
    assert await whole.result(timeout=1) == 3
    assert [(each.number, each.outcome, each.state) for each in found.attempts] == [
        (1, "succeeded", "held"),
        (0, "succeeded", "succeeded"),
    ]
    assert (await count(connection), await count(connection, "held")) == (0, 0)


async def test_children_may_end_before_the_handler_returns(app: Mainspring, work: Work) -> None:
    @app.job
    async def patient() -> int:
        children = [await work.part.options(child=True).submit(number) for number in (1, 2)]
        return sum([await child.result(timeout=10) for child in children])

    handle = await patient.submit()
    await run_until_idle(app)

    assert await handle.result(timeout=1) == 3


async def test_a_run_that_others_wait_for_has_not_ended_before_its_children(app: Mainspring, work: Work) -> None:
    whole = await work.whole.submit(count=2)
    after = await work.part.options(after=whole).submit("after")
    given = await work.part.submit(whole.output)

    await run_until_idle(app)

    assert set(work.done[:3]) == {"whole", 0, 1}
    assert await after.result(timeout=1) == "after"
    assert await given.result(timeout=1) == 2, "its result is handed on"


async def test_children_may_have_children(app: Mainspring, work: Work) -> None:
    @app.job
    async def tree(depth: int) -> int:
        if depth:
            await tree.options(child=True).submit_many([{"depth": depth - 1}] * 2)
        work.done.append(depth)
        return depth

    handle = await tree.submit(3)
    await run_until_idle(app)

    assert await handle.result(timeout=1) == 3
    assert sorted(work.done) == [0] * 8 + [1] * 4 + [2] * 2 + [3]
    [child, _] = (await handle.find()).children
    assert (await app.runs.find(child.run_id)).child_of == handle.id


async def test_children_may_wait_for_each_other(app: Mainspring, work: Work) -> None:
    @app.job
    async def chained() -> str:
        job = work.part.options(child=True)
        first = await job.submit(1)
        await job.submit(first.output)
        return "chained"

    handle = await chained.submit()
    await run_until_idle(app)

    assert (work.done, await handle.result(timeout=1)) == ([1, 1], "chained")


async def test_handlers_that_are_not_async_have_children_too(app: Mainspring, work: Work) -> None:
    @app.job
    def plain() -> int:
        work.part.options(child=True).submit_sync(1)
        work.part.options(child="two").submit_sync(2)
        work.part.options(child=True).submit_many_sync([{"number": 3}])
        return 3

    handle = await plain.submit()
    await run_until_idle(app)

    assert await handle.result(timeout=1) == 3
    assert [each.name for each in (await handle.find()).children] == ["part#00001", "part#00002", "part=two"]
    await asyncio.to_thread(app.close_sync)


async def test_a_worker_of_one_slot_is_free_for_the_children(app: Mainspring, work: Work) -> None:
    async with working(app, slots=1):
        handle = await work.whole.submit(count=5)
        assert await handle.result(timeout=PATIENCE) == 5


async def test_children_under_the_limit_of_their_run_get_its_slot(app: Mainspring, work: Work) -> None:
    @app.job(limit=Limit(1, key="customer"))
    async def under_limit(customer: str, count: int = 0) -> int:
        await under_limit.options(child=True).submit_many([{"customer": customer}] * count)
        return count

    handle = await under_limit.submit("acme", 3)
    await run_until_idle(app)

    assert await handle.result(timeout=1) == 3


async def test_a_run_keeps_no_slot_of_strict_order_while_it_waits(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job(limit=Limit(1, order="strict"))
    async def strict() -> None:
        await work.part.options(child=True, delay=LATER).submit(1)

    first, second = await strict.submit(), await strict.submit()
    await run_until_idle(app)

    assert [await state_of(each) for each in (first, second)] == [State.HELD, State.HELD]
    assert [(await each.find()).held_for for each in (first, second)] == ["children"] * 2
    assert await count(connection, "slot") == 0


async def test_a_handler_that_wanted_children_and_got_none_succeeds_at_once(app: Mainspring, work: Work) -> None:
    @app.job
    async def vain() -> str:
        await work.part.options(child=True).submit_many([])
        with pytest.raises(InvalidInput):
            await work.part.options(child=True, connection=object()).submit(1)
        return "vain"

    handle = await vain.submit()
    await run_until_idle(app)

    [attempt] = (await handle.find()).attempts
    assert (attempt.state, attempt.result) == (State.SUCCEEDED, "vain")


# ── trying again ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_handler_that_runs_again_finds_its_children(app: Mainspring, work: Work) -> None:
    ids: list[Any] = []

    @app.job(retry=AT_ONCE)
    async def stumbling(context: Context) -> int:
        handles = [await work.part.options(child=True).submit(number) for number in (1, 2)]
        handles.append(await work.part.options(child="three").submit(3))
        ids.append([each.id for each in handles])
        if context.attempt < 3:
            raise ConnectionError
        return context.attempt

    handle = await stumbling.submit()
    await run_until_idle(app)

    assert ids[0] == ids[1] == ids[2]
    assert sorted(work.done) == [1, 2, 3], "each was executed once"
    assert await handle.result(timeout=1) == 3


async def test_children_that_are_not_submitted_again_stay_children(app: Mainspring, work: Work) -> None:
    @app.job(retry=AT_ONCE)
    async def forgetful(context: Context) -> str:
        if context.attempt == 1:
            await work.part.options(child=True, delay=LATER).submit(1)
            raise Retry(after=0)
        return "done"

    handle = await forgetful.submit()
    await run_until_idle(app)
    assert (await handle.find()).held_for == "children"

    [child] = (await handle.find()).children
    await app.runs.cancel(child.run_id)
    await run_until_idle(app)
    assert await state_of(handle) is State.DEAD


async def test_other_arguments_under_the_same_name_are_refused(app: Mainspring, work: Work) -> None:
    errors: list[IdempotencyConflict] = []

    @app.job(retry=AT_ONCE)
    async def fickle(context: Context) -> None:
        try:
            await work.part.options(child=True).submit(context.attempt)
        except IdempotencyConflict as error:
            errors.append(error)
        if context.attempt == 1:
            raise ConnectionError

    handle = await fickle.submit()
    await run_until_idle(app)

    [error] = errors
    assert (error.code, error.fields["value"]) == ("child-changed", "part#00001")
    assert await state_of(handle) is State.SUCCEEDED, "the first one is its child"
    assert work.done == [1]


async def test_keys_of_children_are_kept_for_as_long_as_their_run_may_submit_them_again(
    app: Mainspring, work: Work, connection: Connection
) -> None:
    @app.job(retry=ONCE)
    async def stumbling() -> None:
        await work.part.options(child=True).submit(1)
        if "mended" not in work.done:
            raise ConnectionError

    handle = await stumbling.submit()
    await run_until_idle(app)
    await connection.execute("update attempt set recorded_at = recorded_at - interval '25 hours'")
    await connection.execute("update idempotency set check_at = clock_now()")
    for lane in range(LANES):
        await runs.forget_keys(connection, lane, 10)
    await connection.execute("update attempt set recorded_at = recorded_at + interval '25 hours'")
    work.done.append("mended")
    await app.runs.requeue(handle.id)
    await run_until_idle(app)

    assert work.done == [1, "mended"]
    assert await state_of(handle) is State.SUCCEEDED


async def test_whoever_tries_again_after_a_failure_submits_the_same_child(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another attempt, without that failure, would find the child under another number."""
    adopt, failures = fan_outs.adopt, ["not now"]

    async def adopt_later(*given: Any, **more: Any) -> None:
        if failures:
            raise ValueNotStorable(failures.pop())
        await adopt(*given, **more)

    @app.job(retry=AT_ONCE)
    async def stubborn(context: Context) -> None:
        for number in (1, 2):
            await work.part.options(child=True).submit(number)
        if context.attempt == 1:
            raise ConnectionError

    monkeypatch.setattr(fan_outs, "adopt", adopt_later)
    handle = await stubborn.submit()
    await run_until_idle(app)

    assert [each.name for each in (await handle.find()).children] == ["part#00001", "part#00002"]
    assert sorted(work.done) == [1, 2]


# ── failing ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_is_a_dead_letter_if_a_child_is_but_not_before_all_have_ended(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    work.broken |= {0, 1}
    whole = await work.whole.submit(count=2)
    late = await work.whole.submit(count=1, delay=60)
    cleaning = await work.part.options(after=whole, on="failure").submit("clean up")
    await run_until_idle(app)

    found = await whole.find()
    assert found.state is State.DEAD
    error = found.attempts[-1].error
    assert error is not None
    assert error["code"] == "child-failed"
    assert error["child"] in [str(child.run_id) for child in found.children]
    assert error["message"].endswith("is a dead letter, and 1 other did not succeed.")
    assert await state_of(late) is State.HELD
    assert await cleaning.result(timeout=1) == "clean up"
    with pytest.raises(RunFailed, match="Its child"):
        await whole.result(timeout=1)


@pytest.mark.parametrize("how", ["cancelled", "expired"])
async def test_a_child_that_ends_otherwise_is_a_failure_too(
    app: Mainspring, work: Work, how: str, connection: Connection
) -> None:
    handle = await work.whole.submit(count=1, delay=60)
    await run_until_idle(app)
    [child] = (await handle.find()).children
    if how == "cancelled":
        await app.runs.cancel(child.run_id)
    else:
        await connection.execute("update later set expires_at = clock_now()")
        await runs.expire(connection, lane_of(child.run_id), 10)
    await run_until_idle(app)

    found = await handle.find()
    assert found.state is State.DEAD
    assert found.attempts[-1].error is not None
    assert how in found.attempts[-1].error["message"]


async def test_children_that_may_fail_do_no_harm(app: Mainspring, work: Work) -> None:
    work.broken |= {0, 1}
    whole = await work.whole.submit(count=3, may_fail=True)
    await run_until_idle(app)

    assert await whole.result(timeout=1) == 3


async def test_code_that_says_later_that_a_child_may_fail_is_believed(app: Mainspring, work: Work) -> None:
    may_fail = [False, True]

    @app.job(retry=ONCE)
    async def mended() -> str:
        await work.part.options(child="one", may_fail=may_fail.pop(0)).submit("broken")
        return "done"

    work.broken = {"broken"}
    handle = await mended.submit()
    await run_until_idle(app)
    assert await state_of(handle) is State.DEAD

    await app.runs.requeue(handle.id)
    await run_until_idle(app)

    assert await handle.result(timeout=1) == "done"
    assert work.done == ["broken"]


async def test_a_failed_child_that_is_requeued_while_its_run_waits_is_waited_for(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job(retry=ONCE)
    async def mixed() -> str:
        await work.part.options(child=True).submit("bad")
        await work.part.options(child=True, delay=LATER).submit("late")
        return "mixed"

    work.broken.add("bad")
    handle = await mixed.submit()
    await run_until_idle(app)
    assert await state_of(handle) is State.HELD

    work.broken.clear()
    bad = next(child for child in (await handle.find()).children if child.state is State.DEAD)
    await app.runs.requeue(bad.run_id)
    await connection.execute("update later set due_at = clock_now()")
    await run_until_idle(app)

    assert await handle.result(timeout=1) == "mixed"


async def test_a_requeued_run_finds_the_children_that_were_requeued_before_it(app: Mainspring, work: Work) -> None:
    work.broken.add(1)
    whole = await work.whole.submit(count=3)
    await run_until_idle(app)
    assert await state_of(whole) is State.DEAD

    await app.runs.requeue(whole.id)
    await run_until_idle(app)
    assert await state_of(whole) is State.DEAD, "its child still is"

    work.broken.clear()
    bad = [child.run_id for child in (await whole.find()).children if child.state is State.DEAD]
    await app.runs.requeue(*bad)
    await app.runs.requeue(whole.id)
    await run_until_idle(app)

    assert await whole.result(timeout=1) == 3
    assert sorted(each for each in work.done if each != "whole") == [0, 1, 1, 2]


# ── cancelling ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_children_of_a_cancelled_run_are_cancelled_and_theirs_as_well(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job
    async def above() -> None:
        await work.part.options(child=True).submit("done")
        await work.whole.options(child=True).submit(count=2, delay=60)

    handle = await above.submit()
    await run_until_idle(app)
    await handle.cancel(reason="not needed")
    await run_until_idle(app)

    children = (await handle.find()).children
    assert [each.state for each in children] == [State.SUCCEEDED, State.CANCELLED]
    below = (await app.runs.find(children[1].run_id)).children
    assert [each.state for each in below] == [State.CANCELLED] * 2
    assert (await count(connection), await count(connection, "later")) == (0, 0)
    cancelled = await app.runs.find(below[0].run_id)
    assert cancelled.attempts[0].error == {
        "code": "cancelled",
        "message": f"Run {children[1].run_id}, whose child it is, was cancelled.",
    }


async def test_a_handler_that_gives_up_takes_its_children_with_it(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job
    async def fickle() -> None:
        await work.part.options(child=True, delay=LATER).submit(1)
        raise Cancel("changed its mind")

    handle = await fickle.submit()
    await run_until_idle(app)

    found = await handle.find()
    assert (found.state, [each.state for each in found.children]) == (State.CANCELLED, [State.CANCELLED])
    assert (await count(connection), await count(connection, "later")) == (0, 0)


async def test_children_that_run_are_asked_to_stop(app: Mainspring, work: Work) -> None:
    began = asyncio.Event()

    @app.job
    async def endless() -> None:
        began.set()
        await asyncio.Event().wait()

    @app.job
    async def above() -> None:
        await endless.options(child=True).submit()

    async with working(app, keeper=True):
        handle = await above.submit()
        await began.wait()
        await until(lambda: _waits_for_children(handle))
        await handle.cancel()
        [child] = (await handle.find()).children
        with pytest.raises(RunCancelled):
            await app.runs.handle(child.run_id).result(timeout=PATIENCE)


async def _waits_for_children(handle: Handle[Any]) -> bool:
    return (await handle.find()).held_for == "children"


async def test_a_run_that_was_asked_to_stop_gets_no_more_children(app: Mainspring, work: Work) -> None:
    refused: list[RunCancelled] = []

    @app.job
    def stubborn(context: Context) -> None:
        app.runs.cancel_sync(context.run_id)
        try:
            work.part.options(child=True).submit_sync(1)
        except RunCancelled as error:
            refused.append(error)

    handle = await stubborn.submit()
    await run_until_idle(app)

    assert len(refused) == 1
    assert (await handle.find()).children == ()
    assert work.done == []
    await asyncio.to_thread(app.close_sync)


async def test_a_dead_letter_keeps_its_children_until_somebody_purges_it(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job(retry=ONCE)
    async def stumbling() -> None:
        await work.part.options(child=True, delay=LATER).submit(1)
        raise ConnectionError

    handle = await stumbling.submit()
    await run_until_idle(app)
    assert (await state_of(handle), await count(connection, "later")) == (State.DEAD, 1)

    await app.runs.purge(handle.id)
    await run_until_idle(app)

    assert (await count(connection), await count(connection, "later")) == (0, 0)


# ── whoever has lost its run ────────────────────────────────────────────────────────────────────────────────────


async def test_a_handler_that_has_lost_its_run_gets_no_more_children(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    """Its worker was silent, and another one has the run by now: nothing is submitted."""
    refused: list[LeaseLost] = []

    @app.job
    async def late(context: Context) -> None:
        if context.fence > 1:
            return
        [lease] = await connection.fetch("select lane, worker_id from lease")
        await workers.rescue(connection, lease["lane"], lease["worker_id"], 10)  # type: ignore[arg-type]
        try:
            await work.part.options(child=True).submit(1)
        except LeaseLost as error:
            refused.append(error)

    await late.submit()
    await run_until_idle(app)

    assert len(refused) == 1
    assert work.done == []
    assert (await count(connection), await count(connection, "idempotency")) == (0, 0)


async def test_without_a_look_at_the_lease_there_would_be_a_child_that_nobody_waits_for(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: whoever submits children does not ask whose the run is."""

    async def adopt(*_: object, **__: object) -> None: ...

    monkeypatch.setattr(fan_outs, "adopt", adopt)
    handle = await work.whole.submit(count=1, delay=60)
    await run_until_idle(app)

    assert await state_of(handle) is State.SUCCEEDED


# ── what people see ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_waits_for_its_children_is_explained(app: Mainspring, work: Work) -> None:
    @app.job
    async def mixed() -> None:
        await work.part.options(child=True).submit(0)
        await work.part.options(child=True, delay=LATER).submit_many([{"number": 1}, {"number": 2}])

    handle = await mixed.submit()
    await run_until_idle(app)
    children = (await handle.find()).children

    found = await handle.explain()

    assert found.gate is Gate.CHILDREN
    assert found.says == (
        f"it waits for 2 of its 3 children: run {children[1].run_id}, which is scheduled, and 1 other"
    )
    assert found.remedy == f"mainspring run explain {children[1].run_id}"
    last = (await app.runs.find(children[2].run_id)).due_at
    assert (found.then, found.as_soon_as, found.earliest_at) == ([], "its children have ended", last)


async def test_a_flow_counts_the_children_of_its_nodes(app: Mainspring, work: Work) -> None:
    flow = app.flow("album")
    whole = flow.add(work.whole, count=2)
    flow.add(work.part, whole.output)
    submitted = await flow.submit()
    await run_until_idle(app)

    assert (await submitted.wait(timeout=PATIENCE)).state == "succeeded"
    assert await submitted.tree() == ("✓ whole  succeeded  (2 children: 2 succeeded)\n└─ ✓ part  succeeded")


async def test_cancelling_a_flow_cancels_the_children_of_its_nodes(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow = app.flow("album")
    flow.add(work.whole, count=2, delay=60.0)
    submitted = await flow.submit()
    await run_until_idle(app)

    await submitted.cancel()
    await run_until_idle(app)

    assert (await count(connection, "later"), await count(connection)) == (0, 0)


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"child": ""}, "invalid-child"),
        ({"child": 7}, "invalid-child"),
        ({"child": "x" * 101}, "invalid-child"),
        ({"may_fail": True}, "invalid-may-fail"),
        ({"child": True, "may_fail": "perhaps"}, "invalid-may-fail"),
        ({"child": True, "key": "mine"}, "key-of-child"),
        ({"child": True, "unique": Unique()}, "unique-child"),
    ],
)
async def test_what_makes_no_sense_is_refused(app: Mainspring, work: Work, options: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        work.part.options(**options)

    assert caught.value.code == code


async def refusal_of(app: Mainspring, submit: Any, **settings: Any) -> str | None:
    """What a handler is told that submits like this."""
    codes: list[str] = []

    @app.job(name="refused", retry=ONCE, **settings)  # type: ignore[untyped-decorator]  # whatever the settings are
    async def handler(context: Context) -> None:
        try:
            await submit()
        except InvalidInput as error:
            codes.append(error.code)

    await handler.submit()
    await run_until_idle(app)
    return codes[0] if codes else None


async def test_a_child_does_not_wait_for_its_own_run_or_one_above_it(app: Mainspring, work: Work) -> None:
    codes: list[str] = []

    @app.job(retry=ONCE)
    async def inner(context: Context, above: str) -> None:
        for awaited in (above, context.run_id):
            try:
                await work.part.options(child=True, after=[awaited]).submit()
            except InvalidInput as error:
                codes.append(error.code)

    @app.job(retry=ONCE)
    async def outer(context: Context) -> None:
        await inner.options(child=True).submit(str(context.run_id))

    handle = await outer.submit()
    await run_until_idle(app)

    assert codes == ["child-after-its-run"] * 2
    assert await state_of(handle) is State.SUCCEEDED


async def test_a_run_of_another_application_can_be_a_child(app: Mainspring, url: str) -> None:
    async with Mainspring(url) as other:

        @other.job
        async def elsewhere() -> None: ...

        await elsewhere.options(delay=60).submit()

    @app.job(retry=ONCE)
    async def local() -> int:
        for _ in range(2):
            await app.jobs.submit("elsewhere", {}, child="one", delay=60)
        return 1

    handle = await local.submit()
    await run_until_idle(app)

    found = await handle.find()
    assert (found.state, found.held_for) == (State.HELD, "children")
    assert [each.name for each in found.children or ()] == ["elsewhere=one"]


async def test_a_run_whose_handler_has_returned_is_changed_no_more(app: Mainspring, work: Work) -> None:
    """Another age would end it, and its children with it."""
    handle = await work.whole.submit(1, delay=60)
    await run_until_idle(app)

    with pytest.raises(RunAlreadyStarted):
        await app.runs.change(handle.id, max_age=1)
    operation = await app.operations.start("change", RunFilter(jobs=("whole",)), priority=1)
    steps = [step async for step in app.operations.work(operation.id)]

    assert (steps[-1].done, steps[-1].skipped) == (0, 1)
    assert await state_of(handle) is State.HELD


async def test_a_run_that_waits_for_its_children_is_not_waiting_for_its_start(app: Mainspring, work: Work) -> None:
    """Whoever is unique while it waits would else be swallowed by one that does not start again."""

    @app.job(retry=ONCE, unique=Unique(key="customer", while_="waiting"))
    async def sync(customer: str) -> None:
        work.done.append(customer)
        await work.part.options(child=True, delay=60).submit()

    await sync.submit("acme")
    await run_until_idle(app)
    again = await sync.submit("acme")
    await run_until_idle(app)

    assert again.is_new
    assert work.done == ["acme", "acme"]


async def test_children_are_for_handlers_only(app: Mainspring, work: Work) -> None:
    with pytest.raises(InvalidInput) as caught:
        await work.part.options(child=True).submit(1)

    assert caught.value.code == "child-outside-handler"


async def test_a_schedule_makes_no_children(app: Mainspring, work: Work) -> None:
    with pytest.raises(InvalidInput) as caught:
        await work.part.options(child=True).scheduled("daily", "every day at 09:00").create(1)

    assert caught.value.code == "not-for-schedules"


async def test_one_name_does_not_stand_for_many(app: Mainspring, work: Work) -> None:
    job = work.part.options(child="name")

    assert await refusal_of(app, lambda: job.submit_many([{"number": 1}, {"number": 2}])) == "child-name-for-many"


async def test_nodes_of_flows_and_runs_in_a_callers_transaction_are_no_children(
    app: Mainspring, work: Work, url: str
) -> None:
    flow = app.flow("drawn")
    flow.add(work.part.options(child=True), 1)
    assert await refusal_of(app, flow.submit) == "child-elsewhere"

    callers = await asyncpg.connect(url)
    with pytest.raises(InvalidInput) as caught:
        await work.part.options(child=True, connection=callers).submit(1)
    await callers.close()
    assert caught.value.code == "child-elsewhere"


async def test_runs_that_finish_themselves_have_no_children(app: Mainspring, work: Work) -> None:
    job = work.part.options(child=True)

    assert await refusal_of(app, lambda: job.submit(1), delivery="transactional") == "child-of-transactional"


async def test_a_run_that_is_delivered_at_most_once_may_have_children(app: Mainspring, work: Work) -> None:
    @app.job(delivery="at_most_once")
    async def once() -> str:
        await work.part.options(child=True).submit(1)
        return "once"

    handle = await once.submit()
    await run_until_idle(app)

    assert await handle.result(timeout=1) == "once"


async def test_a_call_for_several_runs_has_no_children(app: Mainspring, work: Work) -> None:
    codes: list[str] = []

    @app.job(chunk=2)
    async def several(items: list[Item]) -> list[int]:
        try:
            await work.part.options(child=True).submit(1)
        except InvalidInput as error:
            codes.append(error.code)
        return [item.number for item in items]

    await several.submit_many([{"number": 1}, {"number": 2}])
    await run_until_idle(app)

    assert codes == ["child-in-chunk"]


async def test_there_are_only_so_many_children(app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_out, "MAX_CHILDREN", 3)
    job = work.part.options(child=True)

    async def submit() -> None:
        await job.submit_many([{"number": number} for number in range(3)])
        await job.submit(4)

    assert await refusal_of(app, submit) == "too-many-children"
    assert sorted(work.done) == [0, 1, 2]


async def test_children_of_children_come_to_an_end(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "MAX_DEPTH", 2)

    @app.job(retry=ONCE)
    async def endless() -> None:
        work.done.append("again")
        await endless.options(child=True).submit()

    handle = await endless.submit()
    await run_until_idle(app)

    assert work.done == ["again"] * 3
    found = await handle.find()
    assert (found.state, found.attempts[-1].error and found.attempts[-1].error["code"]) == (State.DEAD, "child-failed")


async def test_a_thousand_children_are_one_transaction(
    app: Mainspring, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "MOST_NEWS", 100)
    handle = await work.whole.submit(count=1_000)
    await run_until_idle(app, timeout=PATIENCE)

    assert await handle.result(timeout=1) == 1_000
    assert len((await handle.find()).children) == 1_000


async def test_inline_children_are_executed_at_once(app: Mainspring, work: Work) -> None:
    with inline(app):
        handle = await work.whole.submit(count=2)
        assert await handle.result() == 2

    assert work.done == [0, 1, "whole"]
