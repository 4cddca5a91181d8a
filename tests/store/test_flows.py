"""Flows: graphs of runs that are submitted as one, and looked at, cancelled and retried as one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, assert_type
from uuid import uuid4

import pytest
from tests.waiting import until

from mainspring import Handle, Limit, Mainspring, RetryPolicy, Unique
from mainspring.errors import FlowNotFound, InvalidInput, ResultTimeout, RunCancelled
from mainspring.model.flow import MAX_NODES, FlowState
from mainspring.model.lifecycle import State
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from collections.abc import Callable

    import asyncpg

    from mainspring import FlowHandle

ONCE = RetryPolicy(max_attempts=1)
PLACES = ("held", "ready", "later", "dependency", "flow")


class Kitchen:
    """A few jobs that count, one of which may be broken."""

    def __init__(self, app: Mainspring) -> None:
        self.is_broken = False
        self.calls: list[str] = []

        @app.job
        async def extract(part: int) -> int:
            self.calls.append(f"extract {part}")
            return part

        @app.job(retry=ONCE)
        async def clean(rows: int) -> int:
            self.calls.append(f"clean {rows}")
            if self.is_broken:
                raise ValueError("dirty")
            return rows * 10

        @app.job
        async def total(parts: list[int]) -> int:
            self.calls.append("total")
            return sum(parts)

        @app.job
        async def warn() -> None:
            self.calls.append("warn")

        self.extract, self.clean, self.total, self.warn = extract, clean, total, warn


@pytest.fixture
def kitchen(app: Mainspring) -> Kitchen:
    return Kitchen(app)


async def rows(connection: asyncpg.Connection[asyncpg.Record]) -> dict[str, int]:
    counts = {each: await connection.fetchval(f"select count(*) from {each}") for each in PLACES}  # noqa: S608
    return {place: count for place, count in counts.items() if count}


async def states(flow: FlowHandle) -> dict[str, State | None]:
    return {node.name: node.state for node in (await flow.find()).nodes}


async def test_a_flow_hands_results_on(
    app: Mainspring, kitchen: Kitchen, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow = app.flow("report")
    parts = [flow.add(kitchen.extract, part) for part in range(1, 4)]
    cleaned = [flow.add(kitchen.clean, each.output) for each in parts]
    total = flow.add(kitchen.total, [each.output for each in cleaned])
    submitted = await flow.submit()
    assert (await submitted.find()).state is FlowState.RUNNING

    await run_until_idle(app)

    found = await submitted.wait(timeout=1)
    assert found.state is FlowState.SUCCEEDED
    assert found.counts == {"succeeded": 7}
    assert await submitted.run(total).result(timeout=1) == 60
    assert kitchen.calls[-1] == "total"
    assert await rows(connection) == {"flow": 1}


async def test_a_worker_works_a_flow_off_by_hints_alone(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("chain")
    node = flow.add(kitchen.extract, 1)
    for _ in range(20):
        node = flow.add(kitchen.clean, node.output).after(node)
    submitted = await flow.submit()

    async with working(app):
        await until(lambda: len(kitchen.calls) == 21)

    assert kitchen.calls[-1] == f"clean {10**19}"
    assert (await submitted.find()).state is FlowState.SUCCEEDED


async def test_what_failed_is_retried_with_all_that_it_kept_from_running(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    one, two = flow.add(kitchen.extract, 1), flow.add(kitchen.extract, 2)
    cleaned = flow.add(kitchen.clean, one.output)
    total = flow.add(kitchen.total, [cleaned.output, two.output])
    warned = flow.add(kitchen.warn).after(cleaned, on="failure")
    last = flow.add(kitchen.warn).after(total).named("last")
    submitted = await flow.submit()
    kitchen.is_broken = True
    await run_until_idle(app)

    found = await submitted.find()
    assert found.state is FlowState.FAILED
    assert await states(submitted) == {
        "extract": State.SUCCEEDED,
        "extract-2": State.SUCCEEDED,
        "clean": State.DEAD,
        "total": State.CANCELLED,
        "warn": State.SUCCEEDED,
        "last": State.CANCELLED,
    }

    kitchen.is_broken = False
    kitchen.calls.clear()
    before = submitted.run(last).id
    await submitted.retry(reason="mended")
    await run_until_idle(app)

    found = await submitted.find()
    assert found.state is FlowState.SUCCEEDED
    assert kitchen.calls == ["clean 1", "total", "warn"]
    runs = {node.name: node.run_id for node in found.nodes}
    assert runs["clean"] == submitted.run(cleaned).id
    assert runs["warn"] == submitted.run(warned).id
    assert runs["last"] == submitted.run(last).id != before
    assert await submitted.run(total).result(timeout=1) == 12


async def test_a_handle_follows_a_retry_that_somebody_else_has_made(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    waiting = flow.add(kitchen.extract.options(delay=60), 1)
    cleaned = flow.add(kitchen.clean, waiting.output)
    submitted = await flow.submit()
    await submitted.cancel()
    cancelled = submitted.run(cleaned)

    await app.flows.retry(submitted.id)
    assert submitted.run(cleaned) == cancelled  # not looked at since then
    await run_until_idle(app)
    assert (await submitted.wait(timeout=60)).state is FlowState.SUCCEEDED

    assert_type(submitted.run(cleaned), Handle[int])
    assert await submitted.run(cleaned).result(timeout=1) == 10
    with pytest.raises(RunCancelled):
        await cancelled.result(timeout=1)


async def test_a_handle_made_of_an_id_knows_nodes_by_their_names(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    node = flow.add(kitchen.extract, 1).named("north")
    submitted = await flow.submit()
    handle = app.flows.handle(submitted.id)

    with pytest.raises(InvalidInput, match=r"await flow\.find\(\)") as caught:
        handle.run("north")
    assert caught.value.code == "flow-not-seen"

    await handle.find()
    assert_type(handle.run("north"), Handle[Any])
    assert handle.run("north") == submitted.run("north") == submitted.run(node)
    with pytest.raises(InvalidInput, match="Did you mean 'north'") as caught:
        handle.run("nroth")
    assert caught.value.code == "node-not-found"
    with pytest.raises(InvalidInput, match=r"flow\.run\('north'\)") as caught:
        handle.run(node)
    assert caught.value.code == "node-of-another-flow"


async def test_blocking_twins_look_anew_as_well(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    node = flow.add(kitchen.warn.options(delay=60))
    submitted = await flow.submit()
    before = submitted.run(node)
    await submitted.cancel()
    await app.flows.retry(submitted.id)

    found = await asyncio.to_thread(submitted.find_sync)

    assert submitted.run(node).id == found.nodes[0].run_id != before.id


@pytest.mark.parametrize("is_resolved", [True, False])
async def test_a_retry_lets_those_who_wait_wait_for_the_new_runs(
    app: Mainspring, kitchen: Kitchen, is_resolved: bool
) -> None:
    flow = app.flow("report")
    first = flow.add(kitchen.extract.options(delay=60), 1)
    held = flow.add(kitchen.warn).after(first, otherwise="hold" if is_resolved else "cancel")
    submitted = await flow.submit()
    await submitted.run(first).cancel()
    if is_resolved:
        await run_until_idle(app)

    await submitted.retry()
    await run_until_idle(app)

    assert await states(submitted) == {"extract": State.SUCCEEDED, "warn": State.SUCCEEDED}
    assert (await submitted.run(held).find()).state is State.SUCCEEDED


async def test_a_flow_that_was_cancelled_by_what_failed_outside_of_it_has_failed(
    app: Mainspring, kitchen: Kitchen
) -> None:
    kitchen.is_broken = True
    outside = await kitchen.clean.submit(1)
    flow = app.flow("report")
    flow.add(kitchen.total, [flow.add(kitchen.extract, outside.output).output])
    submitted = await flow.submit()
    await run_until_idle(app)

    assert (await submitted.find()).state is FlowState.FAILED


async def test_a_flow_of_which_nothing_failed_has_nothing_to_retry(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    flow.add(kitchen.warn)
    submitted = await flow.submit()
    await run_until_idle(app)

    with pytest.raises(InvalidInput) as caught:
        await submitted.retry()

    assert caught.value.code == "nothing-to-retry"


async def test_a_flow_is_cancelled_as_one_and_retried(
    app: Mainspring, kitchen: Kitchen, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow = app.flow("report")
    flow.add(kitchen.total, [flow.add(kitchen.extract, 1).output])
    submitted = await flow.submit()

    found = await submitted.cancel(reason="wrong month")
    await run_until_idle(app)

    assert found.state is FlowState.CANCELLED
    assert kitchen.calls == []
    assert await rows(connection) == {"flow": 1}

    await submitted.retry()
    await run_until_idle(app)
    assert (await submitted.find()).state is FlowState.SUCCEEDED
    acts = await connection.fetch("select action from audit where subject = $1 order by at", str(submitted.id))
    assert [row["action"] for row in acts] == ["flow.cancel", "flow.retry"]


async def test_a_node_waits_for_a_run_outside_of_the_flow(app: Mainspring, kitchen: Kitchen) -> None:
    before = await kitchen.extract.options(delay=60).submit(7)
    flow = app.flow("later")
    flow.add(kitchen.clean, before.output)
    submitted = await flow.submit()
    await run_until_idle(app)
    assert kitchen.calls == []

    await before.cancel()
    await run_until_idle(app)

    assert await states(submitted) == {"clean": State.CANCELLED}


async def test_limits_hold_within_a_flow(app: Mainspring) -> None:
    running: list[int] = []
    most: list[int] = []

    @app.job(limit=Limit(1))
    async def alone(number: int) -> int:
        running.append(number)
        most.append(len(running))
        running.remove(number)
        return number

    flow = app.flow("limited")
    first = flow.add(alone, 0)
    flow.map(alone.options(after=first), [{"number": number} for number in range(1, 6)])
    submitted = await flow.submit()
    await run_until_idle(app)

    assert (await submitted.find()).state is FlowState.SUCCEEDED
    assert max(most) == 1


async def test_a_flow_is_drawn(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    one, two = flow.add(kitchen.extract, 1), flow.add(kitchen.extract, 2)
    flow.add(kitchen.total, [one.output, two.output]).named('the "total" <b>')
    submitted = await flow.submit()

    assert await submitted.tree() == "\n".join(
        ["… extract  ready", '└─ ◌ the "total" <b>  held  (also after extract-2)', "… extract-2  ready"]
    )
    drawing = await submitted.mermaid()
    assert drawing.startswith("flowchart TD\n")
    assert "n0 --> n2" in drawing
    assert "<b>" not in drawing


async def test_flows_are_listed_newest_first(app: Mainspring, kitchen: Kitchen) -> None:
    for name in ("one", "two", "three"):
        flow = app.flow(name)
        flow.add(kitchen.warn)
        await flow.submit()

    newest = await app.flows.list(limit=2)
    oldest = await app.flows.list(before=newest[-1].id)

    assert sorted(each.name for each in [*newest, *oldest]) == ["one", "three", "two"]


async def test_waiting_has_an_end(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("slow")
    flow.add(kitchen.warn)
    submitted = await flow.submit()

    with pytest.raises(ResultTimeout):
        await submitted.wait(timeout=0.01)


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_circle_is_refused(
    app: Mainspring, kitchen: Kitchen, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow = app.flow("circle")
    first = flow.add(kitchen.warn).named("first")
    second = flow.add(kitchen.warn).named("second").after(first)
    first.after(second)

    with pytest.raises(InvalidInput, match=r"in a circle: .*first.*second.*first") as caught:
        await flow.submit()

    assert caught.value.code == "flow-cycle"
    assert await rows(connection) == {}


async def test_an_unknown_run_is_refused_and_nothing_is_submitted(
    app: Mainspring, kitchen: Kitchen, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    flow = app.flow("lost")
    flow.add(kitchen.warn)
    flow.add(kitchen.warn).after(uuid4())

    with pytest.raises(InvalidInput) as caught:
        await flow.submit()

    assert caught.value.code == "parent-not-found"
    assert await rows(connection) == {}


async def test_a_node_of_another_flow_is_refused_by_its_name(app: Mainspring, kitchen: Kitchen) -> None:
    other = app.flow("other").add(kitchen.extract, 1).named("source")
    flow = app.flow("this")
    own = flow.add(kitchen.extract, 1)

    for drawing in (
        lambda: own.after(other),
        lambda: flow.add(kitchen.clean, other.output),
        lambda: flow.add(kitchen.total, [own.output, other.output]),
        lambda: flow.add(kitchen.warn.options(after=[own, other])),
    ):
        with pytest.raises(InvalidInput, match=r"Node 'source' of flow 'other' is no run yet") as caught:
            drawing()
        assert (caught.value.code, caught.value.fields["value"]) == ("node-of-another-flow", "source")

    assert [*await states(await flow.submit())] == ["extract"]


async def test_a_run_outside_of_flows_does_not_wait_for_a_node(
    app: Mainspring, kitchen: Kitchen, connection: asyncpg.Connection[asyncpg.Record]
) -> None:
    node = app.flow("other").add(kitchen.extract, 1)
    after_it = kitchen.warn.options(after=node)

    for submission in (
        kitchen.clean.submit(node.output),
        after_it.submit(),
        after_it.submit_many([{}]),
        after_it.options(after=node, connection=connection).submit(),
        app.jobs.submit("warn", after=node),
    ):
        with pytest.raises(InvalidInput, match=r"Node 'extract' of flow 'other' is no run yet") as caught:
            await submission
        assert caught.value.code == "node-of-another-flow"
    assert await rows(connection) == {}


async def test_whoever_passes_a_handle_or_a_node_is_told_of_its_output(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    node, handle = flow.add(kitchen.extract, 1), await kitchen.extract.submit(1)
    add: Any = flow.add  # as if nobody checked types
    submit: Any = kitchen.total.submit

    misuses: list[tuple[Callable[[], Any], str]] = [
        (lambda: add(kitchen.clean, node), "pass node.output"),
        (lambda: add(kitchen.total, [node.output, node]), "pass node.output"),
        (lambda: add(kitchen.clean, handle), "pass handle.output; for its id, handle.id"),
        (lambda: add(kitchen.total, [{"part": node.output}]), "as an argument, or as a member of a list"),
    ]
    for act, said in misuses:
        with pytest.raises(InvalidInput) as caught:
            act()
        assert (caught.value.code, said in (caught.value.hint or "")) == ("payload-not-json", True)
    with pytest.raises(InvalidInput, match=r"pass handle\.output"):
        await submit([handle])


async def test_a_node_waits_for_one_that_its_options_name(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("report")
    first = flow.add(kitchen.extract, 1)
    flow.add(kitchen.warn.options(after=first))
    flow.add(kitchen.warn.options(after=first, on="end"))
    submitted = await flow.submit()

    assert [list(node.after) for node in (await submitted.find()).nodes] == [[], ["extract"], ["extract"]]


async def test_a_node_whose_result_is_wanted_and_that_need_not_succeed_is_named(
    app: Mainspring, kitchen: Kitchen
) -> None:
    flow = app.flow("report")
    first = flow.add(kitchen.extract, 1)

    with pytest.raises(InvalidInput, match="Node 'extract' need not succeed"):
        flow.add(kitchen.clean.options(after=first, on="end"), first.output)


@pytest.mark.parametrize(("field", "options"), [("key", {"key": "once"})])
async def test_what_is_for_single_runs_is_refused(
    app: Mainspring, kitchen: Kitchen, field: str, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput) as caught:
        app.flow("report").add(kitchen.warn.options(**options))

    assert caught.value.code == f"{field}-in-flow"


async def test_an_empty_flow_and_one_that_is_too_large_are_refused(app: Mainspring, kitchen: Kitchen) -> None:
    with pytest.raises(InvalidInput) as caught:
        await app.flow("empty").submit()
    assert caught.value.code == "flow-empty"

    flow = app.flow("large")
    for _ in range(MAX_NODES + 1):
        flow.add(kitchen.warn)
    with pytest.raises(InvalidInput) as caught:
        await flow.submit()
    assert caught.value.code == "flow-too-large"


async def test_two_nodes_of_one_name_are_refused(app: Mainspring, kitchen: Kitchen) -> None:
    flow = app.flow("twins")
    flow.add(kitchen.warn).named("twin")
    flow.add(kitchen.warn).named("twin")

    with pytest.raises(InvalidInput) as caught:
        await flow.submit()

    assert caught.value.code == "flow-name-twice"


async def test_an_unknown_flow_is_not_found(app: Mainspring) -> None:
    with pytest.raises(FlowNotFound):
        await app.flows.find("0199a1b2-c3d4-8005-9f00-0123456789ab")
    with pytest.raises(InvalidInput, match="not a flow id"):
        await app.flows.find(uuid4())


async def test_runs_that_are_unique_do_not_wait_for_others(app: Mainspring, kitchen: Kitchen) -> None:
    @app.job(unique=Unique("customer"))
    async def bill(customer: str) -> None: ...

    first = await kitchen.extract.submit(1)
    flow = app.flow("bills")
    flow.add(bill, "acme")

    for submission in (flow.submit(), bill.options(after=first).submit("acme")):
        with pytest.raises(InvalidInput) as caught:
            await submission
        assert caught.value.code == "unique-and-waiting"
    await bill.options(unique=False, after=first).submit("acme")
