"""While one node of a Citus cluster is down, what is on the others goes on, and the rest when it is back."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring.clock import SystemClock
from mainspring.control.doctor import examine
from mainspring.control.findings import Level
from mainspring.control.submitter import Submitter
from mainspring.errors import NodeUnreachable
from mainspring.model.ids import lane_of
from mainspring.store import submissions
from mainspring.store.reach import _LANES_OF_NODE, Reach
from mainspring.store.submissions import new_run_ids

from .citus import NODE, START, STOP, on_citus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring import Mainspring
    from mainspring.app.handle import Handle
    from mainspring.store.connection import Connection
    from mainspring.store.submissions import Verdict

pytestmark = [*on_citus, pytest.mark.skipif(not NODE, reason="MAINSPRING_CITUS_NODE names no node to be stopped")]

SUCCEEDED = "select count(*) from attempt where lane = any ($1::smallint[]) and state = 'succeeded'"


async def shell(command: str) -> None:
    process = await asyncio.create_subprocess_exec(*shlex.split(command), stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0, command


@contextlib.asynccontextmanager
async def node_down() -> AsyncIterator[None]:
    await shell(STOP)
    try:
        yield
    finally:
        await shell(START)


@pytest.fixture
async def there(coordinator: Connection) -> frozenset[int]:
    """The lanes of the node that is stopped."""
    lanes = frozenset(row["lane"] for row in await coordinator.fetch(_LANES_OF_NODE, NODE))
    assert lanes
    return lanes


def spread(handles: list[Handle[Any]], there: frozenset[int]) -> tuple[list[int], list[int]]:
    """The lanes of runs here, and those there."""
    lanes = [lane_of(handle.id) for handle in handles]
    return [lane for lane in lanes if lane not in there], [lane for lane in lanes if lane in there]


async def leave_nothing_out(self: Reach, connection: Connection, error: NodeUnreachable) -> bool:
    return False


@pytest.mark.parametrize("without", ["", "leaving out"])
async def test_runs_on_other_nodes_go_on_while_one_is_down_and_the_rest_when_it_is_back(
    citus_app: Mainspring,
    coordinator: Connection,
    there: frozenset[int],
    without: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Runs that are under way when it stops, and runs that become due meanwhile."""
    if without:
        monkeypatch.setattr(Reach, "leave_out", leave_nothing_out)
    begun, go_on = asyncio.Semaphore(0), asyncio.Event()

    @citus_app.job
    async def wait(n: int) -> int:
        begun.release()
        await go_on.wait()
        return n

    @citus_app.job
    async def note(n: int) -> int:
        return n

    under_way = [await wait.options(key=f"wait {n}").submit(n=n) for n in range(20)]
    put_off = [await note.options(key=f"note {n}", delay=timedelta(seconds=6)).submit(n=n) for n in range(100)]
    here, away = spread([*under_way, *put_off], there)
    assert here
    assert away

    async def those_here_have_ended() -> bool:
        return bool(await coordinator.fetchval(SUCCEEDED, sorted(set(here))) >= len(here))

    async with citus_app.running():
        for _ in under_way:
            await begun.acquire()
        async with node_down():
            go_on.set()
            if without:  # the control: whoever asks for all lanes at once hears of none
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(20):
                        await until(those_here_have_ended)
            else:
                await until(those_here_have_ended)
                fresh = await note.submit(n=1000)
                assert await fresh.result(timeout=10) == 1000

        assert [await handle.result(timeout=60) for handle in under_way] == list(range(20))
        assert [await handle.result(timeout=60) for handle in put_off] == list(range(100))
    runs = [await handle.find() for handle in [*under_way, *put_off]]
    assert {run.fence for run in runs} == {1}, "nobody was taken for lost"


@pytest.mark.invariant(1)
@pytest.mark.parametrize("options", [{"key": "once"}, {"delay": 3_600}], ids=["keyed", "delayed"])
async def test_a_submission_whose_commit_a_node_did_not_answer_is_looked_up_and_sent_again(
    citus_app: Mainspring,
    coordinator: Connection,
    there: frozenset[int],
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @citus_app.job
    async def note(n: int) -> int:
        return n

    await note.submit(n=0)
    [run_id] = new_run_ids(1, min(there), datetime.now(UTC))
    sent: list[str] = []
    submit_items = submissions.submit_items

    async def submit_and_lose_the_node(*arguments: Any, **named: Any) -> list[Verdict]:
        verdicts = await submit_items(*arguments, **named)
        if not sent:
            async with node_down():
                sent.append("lost")
        else:
            sent.append("sent again")
        return verdicts

    monkeypatch.setattr(Submitter, "new_ids", lambda self, runs: [run_id])
    monkeypatch.setattr(submissions, "submit_items", submit_and_lose_the_node)
    handle = await note.options(**options).submit(n=1)

    assert sent == ["lost", "sent again"]
    assert handle.id == run_id
    found = "select (select count(*) from ready where id = $1) + (select count(*) from later where id = $1)"
    assert await coordinator.fetchval(found, run_id) == 1


async def test_who_asks_for_what_is_there_is_told_which_node_is_down(
    citus_app: Mainspring, coordinator: Connection, there: frozenset[int]
) -> None:
    @citus_app.job
    async def note(n: int) -> int:
        return n

    handles = [await note.options(key=str(n)).submit(n=n) for n in range(20)]
    lost = next(handle for handle in handles if lane_of(handle.id) in there)
    found = next(handle for handle in handles if lane_of(handle.id) not in there)
    async with node_down():
        assert (await found.find()).state == "ready"
        with pytest.raises(NodeUnreachable, match=NODE) as told:
            await lost.find()
        findings = {each.check: each for each in await examine(coordinator, SystemClock())}

    assert told.value.code == "node-unreachable"
    assert findings["nodes"].level is Level.PROBLEM
    assert NODE in findings["nodes"].says
    assert (await lost.find()).state == "ready"
