"""Flows are retried from what failed, also where that is a child of one of their runs, or a child of a child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mainspring.errors import InvalidInput
from mainspring.model.flow import FlowState
from mainspring.model.lifecycle import State
from mainspring.testing import run_until_idle

from .test_fan_outs import ONCE, Work

if TYPE_CHECKING:
    import asyncpg

    from mainspring import FlowHandle, Mainspring
    from mainspring.app.handle import Handle
    from mainspring.model.fan_out import ChildStatus


@pytest.fixture
def work(app: Mainspring) -> Work:
    return Work(app)


async def album(app: Mainspring, work: Work, **arguments: Any) -> tuple[FlowHandle, Handle[Any]]:
    """A flow of a run with children and one that waits for it, worked off."""
    flow = app.flow("album")
    node = flow.add(work.whole, **arguments)
    flow.add(work.part, node.output)
    submitted = await flow.submit()
    await run_until_idle(app)
    return submitted, submitted.run(node)


async def children(handle: Handle[Any]) -> dict[str, ChildStatus]:
    return {child.name: child for child in (await handle.find()).children}


async def test_a_retried_flow_requeues_dead_children_and_executes_no_others_again(app: Mainspring, work: Work) -> None:
    work.broken |= {1}
    flow, whole = await album(app, work, count=3)
    before = await children(whole)
    assert (await flow.find()).state is FlowState.FAILED

    work.broken.clear()
    work.done.clear()
    await flow.retry(reason="mended")
    await run_until_idle(app)

    assert (await flow.find()).state is FlowState.SUCCEEDED
    assert await whole.result(timeout=1) == 3
    assert sorted(map(str, work.done)) == ["1", "3", "whole"], "3 is what waited for the whole"
    assert {name: child.run_id for name, child in (await children(whole)).items()} == {
        name: child.run_id for name, child in before.items()
    }


async def test_a_child_that_fails_again_fails_its_run_again(app: Mainspring, work: Work) -> None:
    work.broken |= {1}
    flow, whole = await album(app, work, count=2)

    await flow.retry()
    await run_until_idle(app)

    assert (await flow.find()).state is FlowState.FAILED
    assert (await whole.find()).state is State.DEAD
    assert work.done.count(1) == 2
    assert work.done.count(0) == 1


async def test_dead_children_of_dead_children_are_requeued(app: Mainspring, work: Work) -> None:
    @app.job(retry=ONCE)
    async def albums(count: int) -> int:
        for number in range(count):
            await work.whole.options(child=True).submit(count=number + 1)
        return count

    work.broken |= {1}
    flow = app.flow("albums")
    node = flow.add(albums, 2)
    submitted = await flow.submit()
    await run_until_idle(app)
    states = {name: child.state for name, child in (await children(submitted.run(node))).items()}
    assert states == {"whole#00001": State.SUCCEEDED, "whole#00002": State.DEAD}

    work.broken.clear()
    work.done.clear()
    await submitted.retry()
    await run_until_idle(app)

    assert (await submitted.find()).state is FlowState.SUCCEEDED
    assert sorted(map(str, work.done)) == ["1", "whole"], "of the second album what had failed"


async def test_a_child_that_was_cancelled_is_submitted_anew_under_its_name(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow, whole = await album(app, work, count=2, delay=60)
    before = await children(whole)
    await app.runs.cancel(before["part#00001"].run_id)
    await connection.execute("update later set due_at = clock_now()")
    await run_until_idle(app)
    assert (await whole.find()).state is State.DEAD

    await flow.retry()
    await run_until_idle(app)
    await connection.execute("update later set due_at = clock_now()")
    await run_until_idle(app)

    after = await children(whole)
    assert after["part#00001"].run_id != before["part#00001"].run_id
    assert after["part#00002"].run_id == before["part#00002"].run_id
    assert await whole.result(timeout=1) == 2
    assert await connection.fetchval("select count(*) from dependency") == 0


async def test_a_child_that_might_fail_is_left_as_it_ended(app: Mainspring, work: Work) -> None:
    @app.job(retry=ONCE)
    async def mixed() -> str:
        await work.part.options(child="tried", may_fail=True).submit("tried")
        await work.part.options(child="needed").submit("needed")
        return "mixed"

    work.broken |= {"tried", "needed"}
    flow = app.flow("mixed")
    node = flow.add(mixed)
    submitted = await flow.submit()
    await run_until_idle(app)

    work.broken -= {"needed"}
    work.done.clear()
    await submitted.retry()
    await run_until_idle(app)

    assert await submitted.run(node).result(timeout=1) == "mixed"
    assert work.done == ["needed"]
    assert (await children(submitted.run(node)))["part=tried"].state is State.DEAD


async def test_a_dead_child_is_requeued_while_its_run_waits_for_others(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    @app.job(retry=ONCE)
    async def mixed() -> str:
        await work.part.options(child="bad").submit("bad")
        await work.part.options(child="late", delay=60).submit("late")
        work.done.append("mixed")
        return "mixed"

    work.broken |= {"bad"}
    flow = app.flow("mixed")
    node = flow.add(mixed)
    submitted = await flow.submit()
    await run_until_idle(app)
    assert (await submitted.run(node).find()).state is State.HELD

    work.broken.clear()
    await submitted.retry()
    await connection.execute("update later set due_at = clock_now()")
    await run_until_idle(app)

    assert await submitted.run(node).result(timeout=1) == "mixed"
    assert work.done.count("mixed") == 1, "its handler had returned"


async def test_a_flow_whose_children_did_not_fail_has_nothing_to_retry(app: Mainspring, work: Work) -> None:
    flow, whole = await album(app, work, count=2, delay=60)
    assert (await whole.find()).state is State.HELD

    with pytest.raises(InvalidInput, match="nothing to retry"):
        await flow.retry()


async def test_the_audit_tells_of_the_retry_for_each_child(
    app: Mainspring, work: Work, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    work.broken |= {0, 1}
    flow, whole = await album(app, work, count=3)
    dead = [child.run_id for child in (await whole.find()).children if child.state is State.DEAD]

    await flow.retry(reason="mended")

    rows = await connection.fetch("select subject, detail from audit where action = 'run.requeue'")
    assert {row["subject"] for row in rows} == {str(run_id) for run_id in (whole.id, *dead)}
    assert await connection.fetchval("select detail -> 'children' from audit where action = 'flow.retry'") == "2"
