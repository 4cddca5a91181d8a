"""The last child ends while the handler of its run returns, or somebody acts on that run while its children are joined.

One begins at each statement boundary of the other, in both orders. Whatever happens, the run ends once, and it does:
resolving afterwards, as the keeper does, finds all that was left.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.checker import check

from mainspring.errors import RunAlreadyEnded, RunAlreadyStarted, RunNotDead
from mainspring.model.lifecycle import ENDS, State
from mainspring.store import resolving
from mainspring.store.functions import all_functions

from .moves import AWAITING
from .stepping import Died, Gate
from .verbs import VERBS, claim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .verbs import Party, Stage, Subject

    Act = Callable[[Party], Awaitable[Any]]

MOST_BOUNDARIES = 60
_IS_CHILD = """
insert into dependency (lane, parent_id, child_id, lanes, condition, otherwise, check_at)
select $1::smallint, parent, $3, array[$1::smallint], 'success', 'fail', $4::timestamptz
from unnest(array[$2, $3]::uuid[]) as parent
"""


async def family(stage: Stage) -> tuple[Subject, Subject]:
    """A run whose handler is about to return, and its child, whose handler is as well."""
    await stage.clear()
    run = await stage.submit("run")
    await claim(stage.second, run, State.READY)
    child = await stage.submit("child")
    await claim(stage.second, child, State.READY)
    await stage.observer.execute(_IS_CHILD, run.lane, child.run_id, run.run_id, None)
    return run, child


async def resolve(stage: Stage, lane: int) -> None:
    """As the keeper does, until there is nothing to tell."""
    while (await resolving.resolve(stage.observer, lane)).lanes:
        pass


async def meet(stage: Stage, first: Act, second: Act, boundary: int, *, dies: bool = False) -> bool:
    """Both act, the second begun at a boundary of the first; answers whether that was met."""
    gate = Gate(stop_at=boundary)
    stage.first.use(gate)
    stage.second.use(Gate())
    one = asyncio.ensure_future(_outcome(first(stage.first)))
    stopped = asyncio.ensure_future(gate.reached.wait())
    await asyncio.wait({stopped, one}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    other = asyncio.ensure_future(_outcome(second(stage.second)))
    while not other.done() and not await stage.waits_for_a_lock(stage.second):
        await asyncio.wait({other}, timeout=0.001)
    if dies:
        gate.die()
    gate.go_on()
    await asyncio.gather(one, other)
    return gate.reached.is_set()


async def _outcome(act: Awaitable[Any]) -> Any:
    try:
        return await act
    except (RunAlreadyEnded, RunAlreadyStarted, RunNotDead, Died) as error:
        return error


ENDINGS = {"complete": State.SUCCEEDED, "bury": State.DEAD}


@pytest.mark.invariant(14)
@pytest.mark.parametrize("is_first", [True, False], ids=["the handler first", "the child first"])
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_child_that_ends_while_the_handler_returns_is_not_missed(
    stage: Stage, ending: str, is_first: bool
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        run, child = await family(stage)

        async def handler_returns(actor: Party, run: Subject = run) -> None:
            await VERBS["await_children"](actor, run, State.RUNNING)
            await resolving.resolve(actor.plain, run.lane)

        async def child_ends(actor: Party, child: Subject = child) -> None:
            await VERBS[ending](actor, child, State.RUNNING)
            await resolving.resolve(actor.plain, child.lane)

        acts: tuple[Act, Act] = (handler_returns, child_ends) if is_first else (child_ends, handler_returns)
        was_met = await meet(stage, *acts, boundary)
        await resolve(stage, run.lane)

        where = f"boundary {boundary} of {ending}"
        assert (await stage.look(run)).state is ENDINGS[ending], where
        report = await check(stage.observer, [run.run_id, child.run_id])
        assert report.violations == [], f"{where}:\n{report}"
        if not was_met:
            return
    pytest.fail(f"more than {MOST_BOUNDARIES} boundaries")


@pytest.mark.parametrize("dies", [False, True], ids=["who joins goes on", "who joins dies"])
@pytest.mark.parametrize("verb", ["cancel", "change", "expire", "join", "fail", "rescue"])
async def test_whoever_acts_on_a_run_while_it_is_joined_comes_before_or_after(
    stage: Stage, verb: str, dies: bool
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        subject = await stage.set_up(AWAITING)
        was_met = await meet(
            stage,
            lambda actor, subject=subject: resolving.resolve(actor.plain, subject.lane),  # type: ignore[misc]
            lambda actor, subject=subject: VERBS[verb](actor, subject, State.HELD),  # type: ignore[misc]
            boundary,
            dies=dies,
        )
        await resolve(stage, subject.lane)

        found = (await stage.look(subject)).state
        assert found in ({State.SUCCEEDED, State.DEAD} if verb == "fail" else ENDS), (verb, boundary)
        report = await check(stage.observer, [subject.run_id])
        assert report.violations == [], f"{verb} at boundary {boundary}:\n{report}"
        if not was_met:
            return
    pytest.fail(f"more than {MOST_BOUNDARIES} boundaries")


async def test_who_is_changed_while_it_is_joined_is_looked_at_again(stage: Stage) -> None:
    subject = await stage.set_up(AWAITING)
    changing = stage.observer.transaction()
    await changing.start()
    await stage.observer.execute("update held set tags = tags where id = $1", subject.run_id)

    await resolving.resolve(stage.second.plain, subject.lane)
    assert await stage.second.plain.fetchval("select count(*) from held") == 1
    await changing.commit()
    await resolve(stage, subject.lane)

    assert (await stage.look(subject)).state is State.SUCCEEDED


async def test_where_ends_of_children_are_not_told_their_run_is_left_behind(stage: Stage) -> None:
    """The control: whoever ends a run tells nobody."""
    await stage.observer.execute(
        "create or replace function tell_children(lane smallint, runs uuid[]) returns uuid[]"
        " language sql as 'select array[]::uuid[]'"
    )
    try:
        run, child = await family(stage)
        await VERBS["await_children"](stage.first, run, State.RUNNING)
        await VERBS["complete"](stage.second, child, State.RUNNING)
        await resolve(stage, run.lane)
        found = await stage.look(run)
    finally:
        await stage.observer.execute(all_functions()["tell_children"])

    assert found.state is State.HELD
