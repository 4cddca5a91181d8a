"""Admission: what limits cost those who have none, how fast runs pass them, and that nobody passes who may not.

Who ran when is read from history, not from what the limits believe.
"""

from __future__ import annotations

import statistics
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from benchmarks import backlog_caps, tenants, throughput
from benchmarks.harness import (
    Numbers,
    bar,
    durable_server,
    faults,
    fresh_database,
    observer,
    pass_time,
    say,
    until_finished,
)
from benchmarks.limited_jobs import add_shared
from benchmarks.processes import Producer, Worker
from mainspring import Job, Mainspring
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.concurrency import Limit, LimitScope, home_of_gate
from mainspring.store import jobs, limits
from mainspring.store.admission import admit
from mainspring.store.connection import transaction
from mainspring.store.database import Database
from mainspring.store.declaring import Subject
from mainspring.store.migrate import LANES

if TYPE_CHECKING:
    from benchmarks.harness import Looker
    from mainspring.store.connection import Connection
    from mainspring.store.embedded import EmbeddedServer

FIELDS = (
    "unlimited_cost_ratio",
    "keyed_jobs_per_s",
    "max_running_per_key",
    "strict_jobs_per_s",
    "max_running_per_strict_key",
    "out_of_order",
    "release_cost_ratio",
    "paced_jobs_per_s",
    "paced_window_share",
    "fair_share_ratio",
    "fair_share_of_keys",
    "fair_share_of_tenants",
    "capped_submit_per_s",
    "uncapped_submit_per_s",
    "lost",
    "duplicated",
)
ROUNDS = 7  # of the comparison, in turns
WARM_UP = 2.0
FEW, MANY, HOT_LIMIT, RELEASES = 1_000, 100_000, 10, 90  # so often, few have none left
RATE, BURST = 2_000, 50  # of limited_jobs.paced
BACKLOG, OWN, SHARED_SLOTS, SHARED_ROUNDS = 1_000_000, 100, 20, 3

_RUNNING = """
    select max(running) from (
        select sum(step) over (partition by key order by at, step) as running
        from (select convert_from(payload, 'UTF8')::jsonb ->> 'customer' as key, started_at as at, 1 as step
              from attempt where started_at is not null
              union all
              select convert_from(payload, 'UTF8')::jsonb ->> 'customer', finished_at, -1
              from attempt where started_at is not null) as event) as counted"""
_OUT_OF_ORDER = """
    select count(*) from (
        select submitted_at < lag(submitted_at) over (
            partition by convert_from(payload, 'UTF8')::jsonb ->> 'customer' order by started_at, fence) as is_late
        from attempt where started_at is not null) as each where is_late"""
# When runs came in line is when they were released.
_WINDOW = """
    select max(runs) from (
        select count(*) over (order by ready_at range between current row and interval '99999 microseconds' following)
            as runs
        from attempt where state = 'succeeded') as counted"""
_WAIT = """
    insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, payload, reason, gates,
                      gate, turn)
    select $1, gen_random_uuid(), 1, $2, 1, $3, 5, now(), $6, 'limit', $4, $4, (5::bigint << 56) + n
    from generate_series(1, $5) as n"""


_SPAN = """
    select date_part('epoch', max(finished_at) - min(submitted_at)) from attempt where run_id = any ($1::uuid[])"""


async def run(seconds: float, *, rounds: int = ROUNDS) -> Numbers:
    async with durable_server() as server:
        say(f"runs without limits: none is set, or only for others; {rounds} rounds of {seconds:g} s each")
        ratio = await _cost_of_others(server, seconds, rounds)
        say("10,000 keys, one run of each at a time")
        keyed = await _limited(server, seconds, "keyed")
        say("the same in the order of acceptance")
        serial = await _limited(server, seconds, "serial")
        say(f"{RATE:,} starts per second, {BURST} at once")
        paced = await _limited(server, seconds, "paced")
        say(f"one key with {HOT_LIMIT} slots, for which {FEW:,} or {MANY:,} runs wait")
        release = await _release_cost(server)
        say(f"{BACKLOG:,} runs of one customer wait, and {OWN} of another one come")
        of_keys = await _fair_share(server)
        say(f"{tenants.BACKLOG:,} runs of one tenant wait, and {tenants.OWN} of another one come")
        of_tenants = await tenants.share_ratio(server)
        say("batches under backlog caps, and without")
        capped = await backlog_caps.measured(server)
    return {
        "unlimited_cost_ratio": ratio,
        "keyed_jobs_per_s": keyed["jobs_per_s"],
        "max_running_per_key": keyed["running"],
        "strict_jobs_per_s": serial["jobs_per_s"],
        "max_running_per_strict_key": serial["running"],
        "out_of_order": serial["out_of_order"],
        "release_cost_ratio": release,
        "paced_jobs_per_s": paced["jobs_per_s"],
        "paced_window_share": paced["window"] / (0.15 * RATE + BURST),
        "fair_share_ratio": max(of_keys, of_tenants),
        "fair_share_of_keys": of_keys,
        "fair_share_of_tenants": of_tenants,
        **capped,
        **{name: keyed[name] + serial[name] + paced[name] for name in ("lost", "duplicated")},
    }


# ── those without limits ────────────────────────────────────────────────────────────────────────────────────────


async def _cost_of_others(server: EmbeddedServer, seconds: float, rounds: int) -> float:
    """Processor time per run with limits for other jobs, against none: each round in turn, so that noise is shared."""
    ratios = []
    for number in range(rounds):
        costs = {}
        for with_limits in (False, True) if number % 2 else (True, False):
            found = await throughput.measured(
                server, seconds, prepare=_set_limits_for_others if with_limits else None, payload="random"
            )
            costs[with_limits] = found["python_us_per_job"] + found["postgres_us_per_job"]
        ratios.append(costs[True] / costs[False])
        say(f"  {costs[False]:.1f} µs per run without limits, {costs[True]:.1f} with some for others")
    return statistics.median(ratios)


async def _set_limits_for_others(url: str) -> None:
    async with Mainspring(url) as app:
        connection = await Database(url).connect("benchmark")
        await jobs.open_queues(connection, ["stranger"], tenant_id=DEFAULT_TENANT)
        for name in ("stranger", *(f"other-{number}" for number in range(20))):
            await jobs.register(connection, name, {}, actor="benchmark", tenant_id=DEFAULT_TENANT)
            await app.limits.set(1, job=name, key="customer")
        await app.limits.set(10, queue="stranger")
        await connection.close()


# ── those with limits ───────────────────────────────────────────────────────────────────────────────────────────


async def _limited(server: EmbeddedServer, seconds: float, job: str) -> Numbers:
    url = await fresh_database(server, "limited")
    with (
        Worker(url, app="benchmarks.limited_jobs:app") as _,
        Producer(url, job=job, payload="keyed", most_waiting=30_000) as producer,
    ):
        async with observer(url) as connection:
            await producer.is_warm()
            producer.begin()
            await until_finished(connection, 1, seconds=30)
            await pass_time(WARM_UP, "warming up")
            before, began = await _ended(connection), time.perf_counter()
            await pass_time(seconds, "measuring")
            per_second = (await _ended(connection) - before) / (time.perf_counter() - began)
            report = await producer.end()
            await until_finished(connection, report.submitted, seconds=60)
            found = await faults(connection, report.submitted)
            return {
                "jobs_per_s": per_second,
                "running": float(await connection.fetchval(_RUNNING)),
                "out_of_order": float(await connection.fetchval(_OUT_OF_ORDER)),
                "window": float(await connection.fetchval(_WINDOW)),
                **found,
            }


async def _ended(connection: Looker) -> int:
    return int(await connection.fetchval("select count(*) from attempt"))


# ── one hot key ─────────────────────────────────────────────────────────────────────────────────────────────────


async def _release_cost(server: EmbeddedServer) -> float:
    """How long it takes to release those whose turn it is, with many and with few behind them: in turns, medians."""
    async with AsyncExitStack() as open_ones:
        gates = {}
        for waiting in (FEW, MANY):
            url = await fresh_database(server, f"hot_{waiting}")
            connection = await Database(url).connect("benchmark")
            open_ones.push_async_callback(connection.close)
            gates[waiting] = connection, *await _crowded_gate(connection, url, waiting)
        spans: dict[int, list[float]] = {waiting: [] for waiting in gates}
        for number in range(RELEASES):
            for waiting in (FEW, MANY) if number % 2 else (MANY, FEW):
                spans[waiting].append(await _timed_release(*gates[waiting]))
    return statistics.median(spans[MANY]) / statistics.median(spans[FEW])


async def _crowded_gate(connection: Connection, url: str, waiting: int) -> tuple[str, int]:
    await jobs.open_queues(connection, ["bench"], tenant_id=DEFAULT_TENANT)
    job = await jobs.register(connection, "hot", {}, actor="benchmark", tenant_id=DEFAULT_TENANT)
    async with transaction(connection):
        await limits.put(
            connection,
            Subject(LimitScope.JOB, "hot"),
            Limit(HOT_LIMIT),
            declared=None,
            tenant_id=DEFAULT_TENANT,
            actor="benchmark",
            reason="",
        )
    (rule,) = (await limits.book(connection, tenant_id=DEFAULT_TENANT)).rules
    home = home_of_gate(rule.number, LANES)
    async with observer(url) as direct:
        await direct.execute(_WAIT, home, job.id, 1, rule.number, waiting, b"{}")
        await direct.execute("vacuum (analyze) held")
    return rule.number, home


async def _timed_release(connection: Connection, gate: str, home: int) -> float:
    """Those who hold slots end; then it is the turn of the next ones."""
    async with transaction(connection):
        ids = [row["run_id"] for row in await connection.fetch("select run_id from slot where lane = $1", home)]
        await connection.execute("delete from ready where lane = $1 and id = any ($2)", home, ids)
        await connection.fetchval("select end_runs($1, $2)", home, ids)
    began = time.perf_counter()
    await admit(connection, [gate], LANES)
    return time.perf_counter() - began


# ── fair share ──────────────────────────────────────────────────────────────────────────────────────────────────


async def _fair_share(server: EmbeddedServer) -> float:
    """How long a customer's runs take beside another one's backlog, against alone with half of the workers."""
    url = await fresh_database(server, "shared")
    async with Mainspring(url) as client, observer(url) as connection:
        job = add_shared(client)
        with Worker(url, app="benchmarks.limited_jobs:app", slots=SHARED_SLOTS // 2):
            alone = [await _time_of_own(job, connection) for _ in range(SHARED_ROUNDS + 1)][1:]
        before = await _ended(connection)
        await _add_backlog(connection)
        with Worker(url, app="benchmarks.limited_jobs:app", slots=SHARED_SLOTS):
            await until_finished(connection, before + 10 * SHARED_SLOTS, seconds=60)
            beside = [await _time_of_own(job, connection) for _ in range(SHARED_ROUNDS)]
    say(f"  alone at its share {statistics.median(alone):.2f} s, beside the others {statistics.median(beside):.2f} s")
    return statistics.median(beside) / statistics.median(alone)


async def _time_of_own(job: Job[[str], None], connection: Looker) -> float:
    """From the first submission to the last end, as history has it."""
    handles = await job.submit_many([{"customer": "small"}] * OWN)
    for handle in handles:
        await handle.result(timeout=600)
    return float(await connection.fetchval(_SPAN, [handle.id for handle in handles]))


async def _add_backlog(connection: Looker) -> None:
    found = await connection.fetchrow(
        "select limit_rule.id as rule, job.id as job, line.id as line from limit_rule, job, line"
        " where job.name = 'shared' and limit_rule.name = 'shared' and line.queue = 'bench'"
    )
    assert found is not None
    gate, payload = f"{found['rule']}=:big", b'{"customer": "big"}'
    for lane in range(LANES):
        await connection.execute(_WAIT, lane, found["job"], found["line"], gate, BACKLOG // LANES, payload)
    await connection.execute("vacuum (analyze) held")


def show(numbers: Numbers) -> str:
    most = max(numbers["keyed_jobs_per_s"], numbers["strict_jobs_per_s"])
    return "\n".join(
        [
            bar("10,000 keys, one each", numbers["keyed_jobs_per_s"], most, "jobs/s"),
            bar("in order of acceptance", numbers["strict_jobs_per_s"], most, "jobs/s"),
            f"  at once per key: {numbers['max_running_per_key']:.0f},"
            f" in order {numbers['max_running_per_strict_key']:.0f}"
            f" · out of order {numbers['out_of_order']:.0f} · lost {numbers['lost']:.0f}"
            f" · duplicated {numbers['duplicated']:.0f}",
            f"  {RATE:,} starts per second: {numbers['paced_jobs_per_s']:,.0f};"
            f" the fullest tenth of a second had {numbers['paced_window_share']:.2f} of what it may",
            f"  a run without limits costs {numbers['unlimited_cost_ratio']:.3f} times as much with limits for others;"
            f" a release with {MANY:,} waiting {numbers['release_cost_ratio']:.2f} times as much as with {FEW:,}",
        ]
    )
