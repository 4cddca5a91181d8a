"""A run that waits for the run it submitted does not keep it from starting, however few slots there are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.waiting import until

from mainspring import RetryPolicy
from mainspring.errors import RunCancelled, RunFailed
from mainspring.testing import run_until_idle

from .working import working

if TYPE_CHECKING:
    from mainspring import Mainspring

PATIENCE = 60.0
ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def family(app: Mainspring) -> Any:
    """Each generation waits for the next, one way or the other."""

    @app.job
    async def leaf() -> int:
        return 1

    @app.job
    async def twig() -> int:
        handles = await leaf.submit_many([{}, {}])
        return sum(await asyncio.gather(*[handle.result() for handle in handles]))

    @app.job
    def branch() -> int:
        return twig.submit_sync().result_sync() + 1

    @app.job(retry=ONCE)
    async def tree() -> int:
        handle = await branch.submit()
        async for _ in handle.watch():
            pass
        return await handle.result(timeout=0) + 1

    return tree


async def test_four_generations_share_one_slot(app: Mainspring, family: Any) -> None:
    async with working(app, slots=1):
        handles = [await family.submit() for _ in range(2)]
        assert [await handle.result(timeout=PATIENCE) for handle in handles] == [4, 4]
    await asyncio.to_thread(app.close_sync)


async def test_run_until_idle_knows_them_too(app: Mainspring, family: Any) -> None:
    handle = await family.submit()
    await run_until_idle(app)

    assert await handle.result(timeout=PATIENCE) == 4
    await asyncio.to_thread(app.close_sync)


@pytest.fixture
def patient(app: Mainspring) -> Any:
    @app.job
    async def much_later() -> None: ...

    @app.job(timeout=0.3, retry=ONCE)
    async def impatient() -> None:
        await (await much_later.options(delay=3_600).submit()).result()

    @app.job
    async def patient() -> None:
        await (await much_later.options(delay=3_600).submit()).result()

    return patient, impatient


async def test_a_parent_that_waits_can_be_cancelled(app: Mainspring, patient: Any) -> None:
    async with working(app, slots=1) as worker:
        handle = await patient[0].submit()
        await until(lambda: worker.parts.executor.running and worker.parts.executor.capacity.free_slots())
        await handle.cancel()
        with pytest.raises(RunCancelled):
            await handle.result(timeout=PATIENCE)
        assert worker.parts.executor.capacity.free_slots() == 1


async def test_the_time_of_a_parent_that_waits_runs_out_as_always(app: Mainspring, patient: Any) -> None:
    async with working(app, slots=1) as worker:
        handle = await patient[1].submit()
        with pytest.raises(RunFailed, match="took longer than"):
            await handle.result(timeout=PATIENCE)
        assert worker.parts.executor.capacity.free_slots() == 1
