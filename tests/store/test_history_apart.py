"""History may be large, slow or locked: whoever submits and claims does not notice."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from mainspring.model.ids import lane_of
from mainspring.store.statements import load

from .reading import touches
from .routines import inside
from .test_rescuing import claim

if TYPE_CHECKING:
    from mainspring import Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

HISTORY = ("attempt", "audit", "log", "stale")


@pytest.mark.invariant(9)
@pytest.mark.parametrize("name", ["runs/claim", "runs/promote", "runs/waiting_lines"])
def test_whoever_looks_for_runs_does_not_touch_history(name: str) -> None:
    statements = (load(name), *inside(load(name)))
    assert {touch.table for each in statements for touch in touches(each)}.isdisjoint(HISTORY)


@pytest.mark.invariant(9)
async def test_runs_are_submitted_and_claimed_while_nobody_gets_at_history(
    app: Mainspring, connection: Connection, database: Database
) -> None:
    @app.job
    async def sell() -> None: ...

    await sell.options(delay=60).submit()  # the first one defines the job, which is audited
    line = await connection.fetchval("select line_id from later")
    locker = await database.connect("locker")
    async with locker.transaction():
        await locker.execute(f"lock table {', '.join(HISTORY)} in access exclusive mode")
        handle = await sell.submit()
        await claim(connection, lane_of(handle.id), line, uuid4())
    await locker.close()

    assert (await handle.find()).state == "running"
