"""Lists: how long a page of runs takes, by job, by queue, by state and by time, with much waiting and much history.

The pages are asked for as people and programs do: through `app.runs.list`, a page of fifty, in turns.
"""

from __future__ import annotations

import time
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Numbers, bar, durable_server, fresh_database, observer, percentile, say
from mainspring import Mainspring
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.store import jobs
from mainspring.store.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import asyncpg

LISTS = ("by_job", "by_queue", "by_state", "by_time", "all", "failed", "next_page")
FIELDS = tuple(f"{name}_{share}_ms" for name in LISTS for share in ("p50", "p99"))
READY, ATTEMPTS, LITTLE = 1_000_000, 10_000_000, 20_000
CHUNK, BATCH = 500_000, 100
JOBS, QUEUES, DAYS = 50, 5, 10
PER_PAGE = 50

# Ids as submissions make them: the millisecond, then version and lane, then noise. Chosen by a hash, so that jobs and
# queues mix as they do in life: a queue has several jobs, one job is in two queues, the last ones are rare.
_ID = """
    (lpad(to_hex({ms}), 12, '0') || to_hex(32768 + {lane}) || '8' || substr(md5(n::text || '{salt}'), 1, 15))::uuid"""
_JOB = "1 + least({jobs} - 1, (abs(hashint8(n)) % 1000000 / 1000000.0) ^ 2 * {jobs})::int"
_FILL_READY = f"""
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, tags, rank)
    select n % 8, {_ID.format(ms="$3 - ($4 - n) / 10", lane="n % 8", salt="r")}, 1, job, 1, 1 + job % {QUEUES}, 5,
           '{{}}', case when n % 1000 = 0 then array['rare'] end, n
    from (select n, {_JOB.format(jobs=JOBS)} as job from generate_series($1::bigint, $2::bigint) as n) as row"""  # noqa: S608  nothing in it comes from outside
# As completions write it: of what succeeded at one instant, one row of each job names the others.
_FILL_ATTEMPTS = f"""
    with batch as (
        select n, (n / {BATCH} % 8)::int as lane, {_JOB.format(jobs=JOBS)} as job,
               $3::timestamptz - ($4 - n / {BATCH} * {BATCH}) * interval '1 day' * {DAYS} / $4 as at,
               case when n % 50 = 0 then 'failed' when n % 1000 = 1 then 'cancelled' else 'succeeded' end as outcome
        from generate_series($1::bigint, $2::bigint) as n
    ), run as (
        select *, {_ID.format(ms="(date_part('epoch', at) * 1000)::bigint", lane="lane", salt="a")} as id from batch
    ), named as (
        select *, row_number() over alike as place, array_agg(id) over alike as ids
        from run window alike as (partition by at, job, outcome order by n
                                  rows between unbounded preceding and unbounded following)
    )
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, ready_at, claimed_at, started_at, finished_at, recorded_at, worker_id, error,
                         codec, payload, submitted_at, is_covered, covers)
    select lane, id, 1, 1, 1, job, 1, 1 + job % {QUEUES}, 5, outcome::attempt_outcome,
           case outcome when 'failed' then 'scheduled' else outcome end::run_state,
           at, at, at, at, at, at, '00000000-0000-4000-8000-000000000001',
           case outcome when 'failed' then '{{"type": "ConnectionError", "message": "no answer"}}'::jsonb end,
           0, '{{}}', at, case when outcome = 'succeeded' and place > 1 then true end,
           case when outcome = 'succeeded' and place = 1 and cardinality(ids) > 1 then ids end
    from named order by n"""  # noqa: S608


async def run(seconds: float, *, small: bool = False) -> Numbers:
    scale = LITTLE if small else READY
    async with durable_server() as server:
        url = await fresh_database(server, "lists")
        now = await _fill(url, ready=scale, attempts=scale * (ATTEMPTS // READY))
        return await _measure(url, seconds, now)


# ── filling ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _fill(url: str, *, ready: int, attempts: int) -> datetime:
    registering = await Database(url).connect("benchmark")
    await jobs.open_queues(registering, [f"queue-{n}" for n in range(QUEUES)], tenant_id=DEFAULT_TENANT)
    for n in range(JOBS):
        await jobs.register(registering, f"job-{n}", {}, actor="benchmark", tenant_id=DEFAULT_TENANT)
    await registering.close()
    async with observer(url) as connection:
        for day in range(DAYS + 1):
            await connection.execute("select add_history_partition(current_date - $1::int)", day)
        now: datetime = await connection.fetchval("select now()")
        milliseconds = int(now.timestamp() * 1000)
        await _in_chunks(connection, _FILL_READY, ready, milliseconds, "ready runs")
        await _in_chunks(connection, _FILL_ATTEMPTS, attempts, now, "attempts")
        say("analysing")
        await connection.execute("vacuum (analyze) ready")
        await connection.execute("vacuum (analyze) attempt")
        return now


async def _in_chunks(
    connection: asyncpg.Connection[asyncpg.Record], statement: str, count: int, at: Any, what: str
) -> None:
    for first in range(1, count + 1, CHUNK):
        last = min(count, first + CHUNK - 1)
        await connection.execute(statement, first, last, at, count)
        say(f"{last:,} of {count:,} {what}")


# ── measuring ───────────────────────────────────────────────────────────────────────────────────────────────────


async def _measure(url: str, seconds: float, now: datetime) -> Numbers:
    spans: dict[str, list[float]] = defaultdict(list)
    async with Mainspring(url) as app:
        cursor = (await app.runs.list(limit=PER_PAGE)).cursor
        questions = _questions(now, cursor)
        for _ in range(2 * len(LISTS)):  # warm-up
            await app.runs.list(limit=PER_PAGE, **next(questions)[1])
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name, question = next(questions)
            began = time.monotonic()
            page = await app.runs.list(limit=PER_PAGE, **question)
            spans[name].append(1000 * (time.monotonic() - began))
            if not page.runs:
                raise RuntimeError(f"The list {name} {question} is empty.")
    return {
        f"{name}_{share}_ms": percentile(spans[name], portion)
        for name in LISTS
        for share, portion in (("p50", 0.5), ("p99", 0.99))
    }


def _questions(now: datetime, cursor: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """One kind of list after the other, each with other jobs, queues, states and times every time."""
    turn = 0
    states = ("ready", "succeeded", "cancelled")
    while True:
        ago = timedelta(days=DAYS * (turn % 97) / 100, minutes=5)
        yield "by_job", {"job": f"job-{turn % JOBS}"}
        yield "by_queue", {"queue": f"queue-{turn % QUEUES}"}
        yield "by_state", {"state": states[turn % len(states)]}
        yield "by_time", {"until": now - ago}
        yield "all", {}
        yield "failed", {"failed": True, "job": f"job-{turn % JOBS}"}
        yield "next_page", {"cursor": cursor}
        turn += 1


def show(numbers: Numbers) -> str:
    most = max(numbers.values())
    return "\n".join(
        bar(f"{name} {share}", numbers[f"{name}_{share}_ms"], most, "ms") for name in LISTS for share in ("p50", "p99")
    )
