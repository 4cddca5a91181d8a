"""Fills the line quickly: rows as a submission would write them, by COPY, spread over all lanes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from benchmarks.jobs import app, noop
from benchmarks.payload import CALL
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.run import NewRun
from mainspring.store import jobs, submissions
from mainspring.store.database import Database
from mainspring.store.migrate import check_schema

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

CHUNK = 5_000  # per lane and transaction


async def fill(url: str, count: int, *, priority: int = 5) -> NewRun:
    """Add about so many ready runs of `noop`; answers with what each of them looks like."""
    connection = await Database(url).connect("filling")
    try:
        run, lanes = await new_run(connection, priority), await check_schema(connection)
        size = min(CHUNK, -(-count // lanes))
        for number, start in enumerate(range(0, count, size)):
            await add(connection, number % lanes, min(size, count - start), run)
    finally:
        await connection.close()
    return run


async def new_run(connection: Connection, priority: int) -> NewRun:
    lines = await jobs.open_queues(connection, app.registry.queues, tenant_id=DEFAULT_TENANT)
    definition = noop.handler.definition.as_document()
    reference = await jobs.register(connection, noop.name, definition, actor="benchmark", tenant_id=DEFAULT_TENANT)
    line = lines[noop.definition.queue]
    return NewRun(DEFAULT_TENANT, reference.id, reference.version, line, priority, msgspec.json.encode(CALL))


async def add(connection: Connection, lane: int, count: int, run: NewRun) -> None:
    ids = submissions.new_run_ids(count, lane, datetime.now(UTC))
    await submissions.copy_plain(connection, ids, [run] * count)
