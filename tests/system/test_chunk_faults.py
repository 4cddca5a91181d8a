"""Workers that are killed, drained or crashed in the middle of a chunk: every run ends once, and blame is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.waiting import PATIENCE

from .faulty_app import CHUNK, UNTIL_TOLD
from .machinery import SHORT_LEASE_TIME

if TYPE_CHECKING:
    from .machinery import System

ROWS = [{"number": number, "seconds": UNTIL_TOLD} for number in range(CHUNK)]


async def test_all_runs_of_a_chunk_whose_worker_is_killed_are_rescued(system: System, jobs: Any) -> None:
    victim = system.start(lease_time=SHORT_LEASE_TIME)
    assert await system.live_workers(1)
    handles = await jobs.store_rows.submit_many(ROWS)
    assert await system.eventually(lambda: system.started(CHUNK))
    victim.kill()
    await system.tell_them_to_go_on()
    system.start(lease_time=SHORT_LEASE_TIME)

    assert [await handle.result(timeout=PATIENCE) for handle in handles] == list(range(CHUNK))
    for handle in handles:
        run = await handle.find()
        assert [(each.number, each.outcome) for each in run.attempts] == [(1, "crashed"), (1, "succeeded")]
    assert len(await system.effects("end of 1")) == CHUNK  # whoever was in a crash is called alone
    report = await system.report([handle.id for handle in handles], must_be_drained=True)
    assert report.violations == [], report


async def test_a_run_that_kills_its_worker_costs_the_others_of_its_chunk_one_attempt(system: System, jobs: Any) -> None:
    system.start()
    assert await system.live_workers(1)
    handles = await jobs.store_rows.submit_many([{"number": n, "poison": n == 2} for n in range(CHUNK)])
    poison = handles.pop(2)

    assert await system.eventually(lambda: system.count("dead"))
    assert [await handle.result(timeout=PATIENCE) for handle in handles] == [0, 1, 3, 4]
    for handle in handles:
        assert [each.outcome for each in (await handle.find()).attempts] == ["crashed", "succeeded"]
    codes = [each.error["code"] for each in (await poison.find()).attempts]
    assert codes == ["worker-lost", "process-crashed", "process-crashed"]
    assert await system.count("worker") == 2  # it took one worker with it, and only one


async def test_runs_that_share_calls_after_a_crash_take_down_one_worker_after_the_other(
    system: System, jobs: Any
) -> None:
    """The control."""
    system.start(sabotage="chunk_blame")
    assert await system.live_workers(1)
    await jobs.store_rows.submit_many([{"number": n, "poison": n == 2} for n in range(CHUNK)])

    assert await system.eventually(lambda: system.value("select count(*) >= 3 from worker"))
    assert await system.count("attempt", "state = 'succeeded'") == 0
    assert await system.count("attempt", "error->>'code' = 'process-crashed'") == 0


async def test_a_worker_that_is_drained_in_the_middle_of_a_chunk_gives_all_its_runs_back(
    system: System, jobs: Any
) -> None:
    first = system.start(grace=0.0)
    assert await system.live_workers(1)
    handles = await jobs.store_rows.submit_many(ROWS)
    assert await system.eventually(lambda: system.started(CHUNK))
    first.stop()
    assert await system.count("ready") == CHUNK
    await system.tell_them_to_go_on()
    system.start()

    assert [await handle.result(timeout=PATIENCE) for handle in handles] == list(range(CHUNK))
    for handle in handles:
        run = await handle.find()
        assert [(each.number, each.outcome) for each in run.attempts] == [(1, "interrupted"), (1, "succeeded")]
    assert len(await system.effects(f"end of {CHUNK}")) == CHUNK
