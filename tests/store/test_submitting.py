"""What an application may rely on when it submits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring import Mainspring


async def test_a_submitted_run_is_ready_and_can_be_found(app: Mainspring) -> None:
    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    handle = await add.submit(a=1, b=2)

    run = await handle.find()
    assert (run.state, run.job, run.payload) == ("ready", "add", {"a": 1, "b": 2})
