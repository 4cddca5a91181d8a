"""Tenants: how long a small one's runs take beside a large one's backlog, and what idle tenants cost a worker.

Who ran when is read from history. What idles is compared with an installation of one tenant, in turns.
"""

from __future__ import annotations

import statistics
import time
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks import limited_jobs
from benchmarks.harness import Numbers, bar, durable_server, fresh_database, observer, pass_time, say, until_finished
from benchmarks.processes import Worker, cpu_seconds
from mainspring import Mainspring
from mainspring.model.run import NewRun
from mainspring.store import submissions
from mainspring.store.database import Database
from mainspring.store.migrate import LANES
from mainspring.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from benchmarks.harness import Looker
    from mainspring import Job
    from mainspring.store.embedded import EmbeddedServer

FIELDS = (
    "fair_share_ratio",
    "weighted_share",
    "statements_per_s",
    "statements_per_s_of_one",
    "cpu_ms_per_s",
    "cpu_ms_per_s_of_one",
    "many_tenants_jobs_per_s",
)
BACKLOG, OWN, SLOTS, ROUNDS = 1_000_000, 100, 20, 3
CHUNK = 5_000  # runs of one COPY
TENANTS = 1_000
RUNS_OF_EACH = 20
WEIGHT, SHARED = 3, 2_000  # a tenant of this weight beside one of 1: who had how many of so many runs
WARM_UP = 5.0
APP = "benchmarks.limited_jobs:app"

_SPAN = """
    select date_part('epoch', max(finished_at) - min(submitted_at)) from attempt where run_id = any ($1::uuid[])"""
_SHARE = """
    select avg((tenant.name = 'heavy')::int) from (
        select tenant_id from attempt where tenant_id <> 1 order by started_at offset $1 limit $2) as first
    join tenant on tenant.id = first.tenant_id"""
_CALLS = """
    select coalesce(sum(calls), 0) from public.pg_stat_statements
    where dbid = (select oid from pg_database where datname = $1) and toplevel"""


async def run(seconds: float) -> Numbers:
    async with durable_server(shared_preload_libraries="pg_stat_statements") as server:
        say(f"{BACKLOG:,} runs of one tenant wait, and {OWN} of another one come")
        ratio = await share_ratio(server)
        say(f"a tenant of weight {WEIGHT} beside one of weight 1, both with more than enough")
        weighted = await _weighted_share(server)
        say(f"{TENANTS:,} tenants idle, and one")
        idle = await _idle(server, seconds)
        say(f"{TENANTS:,} tenants have {RUNS_OF_EACH} runs each")
        many = await _many(server)
    return {"fair_share_ratio": ratio, "weighted_share": weighted, **idle, "many_tenants_jobs_per_s": many}


# ── shares ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def share_ratio(server: EmbeddedServer) -> float:
    """How long a tenant's runs take beside another one's backlog, against alone with half of the workers."""
    url = await fresh_database(server, "tenants")
    async with Mainspring(url) as client, observer(url) as connection:
        job = limited_jobs.add_moment(client)
        for name in ("big", "small"):
            await client.tenants.create(name)
        with Worker(url, app=APP, slots=SLOTS // 2):
            alone = [await _time_of_own(job, connection) for _ in range(ROUNDS + 1)][1:]
        await _add_backlog(client, url, "big", BACKLOG)
        before = int(await connection.fetchval("select count(*) from attempt"))
        with Worker(url, app=APP, slots=SLOTS):
            await until_finished(connection, before + 10 * SLOTS, seconds=60)
            beside = [await _time_of_own(job, connection) for _ in range(ROUNDS)]
    say(f"  alone at its share {statistics.median(alone):.2f} s, beside the others {statistics.median(beside):.2f} s")
    return statistics.median(beside) / statistics.median(alone)


async def _time_of_own(job: Job[[str], None], connection: Looker) -> float:
    """From the first submission to the last end, as history has it."""
    handles = await job.options(tenant="small").submit_many([{"customer": "small"}] * OWN)
    for handle in handles:
        await handle.result(timeout=600)
    return float(await connection.fetchval(_SPAN, [handle.id for handle in handles]))


async def _add_backlog(client: Mainspring, url: str, tenant: str, count: int) -> None:
    """Rows as a submission would write them, by COPY, spread over all lanes."""
    first = await client.for_tenant(tenant).jobs.submit("moment", {"customer": tenant})
    connection = await Database(url).connect("filling")
    row = await connection.fetchrow("select * from ready where id = $1", first.id)
    assert row is not None
    new = NewRun(row["tenant_id"], row["job_id"], row["job_version"], row["line_id"], row["priority"], row["payload"])
    for number, start in enumerate(range(0, count, CHUNK)):
        some = min(CHUNK, count - start)
        ids = submissions.new_run_ids(some, number % LANES, datetime.now(UTC))
        await submissions.copy_plain(connection, ids, [new] * some)
    await connection.execute("vacuum (analyze) ready")
    await connection.close()


async def _weighted_share(server: EmbeddedServer) -> float:
    """Which part of the runs is of the heavier tenant, while both have some waiting."""
    url = await fresh_database(server, "weighed")
    async with Mainspring(url) as client, observer(url) as connection:
        limited_jobs.add_moment(client)
        await client.tenants.create("heavy", weight=WEIGHT)
        await client.tenants.create("light")
        for name in ("heavy", "light"):
            await _add_backlog(client, url, name, 2 * SHARED)
        with Worker(url, app=APP, slots=SLOTS):
            await until_finished(connection, SHARED, seconds=120)
            return float(await connection.fetchval(_SHARE, SHARED // 10, SHARED // 2))


# ── idling ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def _idle(server: EmbeddedServer, seconds: float) -> Numbers:
    async with AsyncExitStack() as stack:
        looker = await stack.enter_async_context(observer(server.dsn))
        await looker.execute("create extension if not exists pg_stat_statements schema public")
        found: dict[str, list[Numbers]] = {}
        for name, count in (("one", 1), ("many", TENANTS)) * ROUNDS:
            async with _idling(server, name, count) as worker:
                found.setdefault(name, []).append(await _watched(server, looker, worker, name, seconds / ROUNDS / 2))
        medians = {
            name: {each: statistics.median(one[each] for one in rounds) for each in rounds[0]}
            for name, rounds in found.items()
        }
    return {
        "statements_per_s": medians["many"]["statements_per_s"],
        "statements_per_s_of_one": medians["one"]["statements_per_s"],
        "cpu_ms_per_s": medians["many"]["cpu_ms_per_s"],
        "cpu_ms_per_s_of_one": medians["one"]["cpu_ms_per_s"],
    }


@asynccontextmanager
async def _idling(server: EmbeddedServer, name: str, count: int) -> AsyncIterator[Worker]:
    """A worker of an installation whose tenants each have a job and a line, and nothing to do."""
    url = await fresh_database(server, name)
    async with Mainspring(url) as client, observer(url) as connection:
        limited_jobs.add_moment(client)
        await client.jobs.submit("moment", {"customer": "any"})
        await connection.execute(
            "with made as (insert into tenant (id, name)"
            " select 10 + n, 'tenant-' || n from generate_series(2, $1::int) as n returning id),"
            " lines as (insert into line (tenant_id, queue) select id, 'bench' from made)"
            " insert into job (tenant_id, name, version) select id, 'moment', 1 from made",
            count,
        )
        with Worker(url, app=APP, slots=WorkerSettings().slots) as worker:
            await until_finished(connection, 1, seconds=60)
            await pass_time(WARM_UP, "becoming idle")
            yield worker


async def _watched(server: EmbeddedServer, looker: Looker, worker: Worker, name: str, seconds: float) -> Numbers:
    assert server.pid is not None
    calls, cpu, began = await looker.fetchval(_CALLS, name), _cpu(server, worker), time.monotonic()
    await pass_time(seconds, "idling")
    span = time.monotonic() - began
    found = {
        "statements_per_s": float(await looker.fetchval(_CALLS, name) - calls) / span,
        "cpu_ms_per_s": 1_000 * (_cpu(server, worker) - cpu) / span,
    }
    say(
        "  {}: {statements_per_s:.2f} statements/s, {cpu_ms_per_s:.1f} ms of processor time per second".format(
            name, **found
        )
    )
    return found


def _cpu(server: EmbeddedServer, worker: Worker) -> float:
    assert server.pid is not None
    return worker.cpu_seconds() + cpu_seconds(server.pid)


# ── all of them at once ─────────────────────────────────────────────────────────────────────────────────────────


async def _many(server: EmbeddedServer) -> float:
    """How many runs per second are executed of a thousand tenants that all have some."""
    url = await fresh_database(server, "many_at_once")
    async with Mainspring(url) as client, observer(url) as connection:
        noop = limited_jobs.add_plain(client)
        for number in range(TENANTS):
            await client.tenants.create(f"tenant-{number}")
            await noop.options(tenant=f"tenant-{number}").submit_many([{}] * RUNS_OF_EACH)
        with Worker(url, app=APP):
            await until_finished(connection, 1, seconds=60)
            began = time.monotonic()
            await until_finished(connection, TENANTS * RUNS_OF_EACH, seconds=120)
            return TENANTS * RUNS_OF_EACH / (time.monotonic() - began)


def show(numbers: Numbers) -> str:
    most = max(numbers["cpu_ms_per_s"], numbers["cpu_ms_per_s_of_one"])
    return "\n".join(
        [
            f"  beside {BACKLOG:,} runs of another tenant, {OWN} runs take {numbers['fair_share_ratio']:.2f} times"
            " as long as alone at their share",
            f"  of weight {WEIGHT} beside 1: {numbers['weighted_share']:.0%} of the runs",
            bar(f"idle, {TENANTS:,} tenants", numbers["cpu_ms_per_s"], most, "ms of processor time per second"),
            bar("idle, one tenant", numbers["cpu_ms_per_s_of_one"], most, "ms of processor time per second"),
            f"  idle: {numbers['statements_per_s']:.1f} statements/s, with one tenant"
            f" {numbers['statements_per_s_of_one']:.1f}",
            f"  {TENANTS:,} tenants with runs: {numbers['many_tenants_jobs_per_s']:,.0f} per second",
        ]
    )
