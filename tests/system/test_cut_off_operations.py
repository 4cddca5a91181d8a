"""An operation whose process is killed in the middle of a batch is resumed elsewhere, and treats no run twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from mainspring.model.filter import run_filter
from mainspring.testing import run_until_idle

from .machinery import ROOT

if TYPE_CHECKING:
    from uuid import UUID

    import asyncpg

    from mainspring import Mainspring

    Connection = asyncpg.Connection[asyncpg.Record]

MANY = 50


async def killed_and_resumed(app: Mainspring, url: str, *words: str) -> tuple[int, int]:
    """Run fifty finished runs again, with a kill on the way; answers with what the operation says it did, in halves."""

    @app.job
    async def sell() -> None: ...

    await sell.submit_many([{}] * MANY)
    await run_until_idle(app)
    operation = await app.operations.start("rerun", run_filter(state="succeeded"))
    killed = subprocess.run(
        [sys.executable, "-m", "tests.system.work_operation", url, str(operation.id), *words], cwd=ROOT, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    half_way = await app.operations.find(operation.id)
    assert not half_way.is_over
    return half_way.done, await resumed(app, operation.id)


async def resumed(app: Mainspring, operation_id: UUID) -> int:
    done = 0
    async for operation in app.operations.work(operation_id, batch=7):
        done = operation.done
    return done


async def reruns(connection: Connection) -> tuple[int, int]:
    """How many new runs there are, and of how many old ones."""
    row = await connection.fetchrow("select count(*), count(distinct headers ->> 'rerun_of') from ready")
    assert row is not None
    return row[0], row[1]


async def test_a_killed_operation_goes_on_after_its_last_batch(
    app: Mainspring, url: str, connection: Connection
) -> None:
    half_way, done = await killed_and_resumed(app, url)

    assert (half_way, done) == (14, MANY)
    assert await reruns(connection) == (MANY, MANY)
    assert await connection.fetchval("select count(*) from audit where action = 'run.rerun'") == MANY


async def test_without_one_transaction_for_runs_and_cursor_some_would_be_treated_twice(
    app: Mainspring, url: str, connection: Connection
) -> None:
    """The control."""
    _, done = await killed_and_resumed(app, url, "apart")

    assert done == MANY
    assert await reruns(connection) == (MANY + 7, MANY)
