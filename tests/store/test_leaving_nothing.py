"""What a finished run leaves in the memory of its worker."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import pytest

from mainspring import Context, RetryPolicy
from mainspring.store.columns import ID
from mainspring.testing import run_until_idle
from mainspring.worker.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring import Mainspring

RUNS = 10


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def plain() -> None:
    pass


async def waiting(context: Context) -> None:
    await asyncio.sleep(0)


def threaded() -> None:
    pass


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("handler", [plain, waiting, threaded])
async def test_finished_runs_leave_no_circles_behind(app: Mainspring, handler: object) -> None:
    """The collector would find them, at a cost that grows with the rate of runs: an eighth of a worker's time."""
    job = app.job(retry=RetryPolicy(max_attempts=1))(handler)  # type: ignore[call-overload]
    ours = {handle.id for handle in await job.submit_many([{}] * RUNS)}

    assert await run_until_idle(app) == {"succeeded": RUNS}
    await asyncio.sleep(0)  # for the last task to let go

    assert [each for each in gc.get_objects() if isinstance(each, Work) and each.row[ID] in ours] == []
