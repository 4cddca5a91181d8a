"""The bare SQL loop: the same tables and indexes without a worker, guards or handlers. The ceiling to compare with."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from itertools import cycle
from typing import Any
from uuid import uuid4

import msgspec

from benchmarks.payload import random_calls
from mainspring.store.columns import AttemptRecord
from mainspring.store.database import Database
from mainspring.store.instants import micros_of
from mainspring.store.submissions import new_run_ids

BATCH, MOST_WAITING, LINE = 500, 20_000, 999_999
COLUMNS = ("lane", "id", "tenant_id", "job_id", "job_version", "line_id", "priority", "payload")
CLAIM = """
with picked as materialized (
    delete from ready where lane = $1 and id = any (array(
        select id from ready where lane = $1 and line_id = $2 and priority = 5 order by rank limit $3
        for update skip locked))
    returning *, run_of(id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision,
        due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at, ready_at) as run
), taken as (
    insert into lease (lane, id, worker_id, runs, ids, done, cancel)
    select $1, $4, $4, array_agg(run), array_agg(id), '0', '0' from picked having count(*) > 0
)
select id, due_at, ready_at, payload, submitted_at from picked"""


async def bare_loop(url: str, seconds: float, lanes: int = 8) -> float:
    """Jobs per second through submit, claim, finish and history, for so many seconds."""
    payloads = cycle([msgspec.json.encode(each) for each in random_calls(MOST_WAITING)])
    until, submitted, finished = time.perf_counter() + seconds, 0, 0

    async def produce() -> None:
        nonlocal submitted
        connection = await Database(url).connect()
        while time.perf_counter() < until:
            if submitted - finished > MOST_WAITING:
                await asyncio.sleep(0.005)
                continue
            lane = submitted // BATCH % lanes
            ids = new_run_ids(BATCH, lane, datetime.now(UTC))
            rows = [(lane, each, 1, 1, 1, LINE, 5, next(payloads)) for each in ids]
            await connection.copy_records_to_table("ready", columns=COLUMNS, records=rows)
            submitted += BATCH
        await connection.close()

    async def consume() -> None:
        nonlocal finished
        connection = await Database(url).connect(raw_time=True)
        turn = 0
        while time.perf_counter() < until:
            lane, lease, turn = turn % lanes, uuid4(), turn + 1
            rows = await connection.fetch(CLAIM, lane, LINE, BATCH, lease)
            now = micros_of(datetime.now(UTC))
            records: list[tuple[Any, ...]] = [
                (r[1], r[2], 1, 1, 1, 5, 0, None, None, None, None, r[4], lane, r[0], 1, 1, LINE, "succeeded",
                 "succeeded", now, now, now, lease, None, None, r[3]) for r in rows]  # fmt: skip
            async with connection.transaction():
                await connection.execute("delete from lease where lane = $1 and id = $2", lane, lease)
                await connection.copy_records_to_table("attempt", columns=AttemptRecord._fields, records=records)
            finished += len(rows)
        await connection.close()

    await asyncio.gather(produce(), consume())
    return finished / seconds
