"""The same life of a run on a Citus cluster: claims, rescues, retries and ends, distributed by lane."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import asyncpg
import pytest
from tests.registering import registered_worker

from mainspring import Context, Mainspring, RetryPolicy
from mainspring.errors import IdempotencyConflict, RunFailed, RunNotFound
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of
from mainspring.model.run import PRIORITIES
from mainspring.store import health, history, jobs, leases, workers
from mainspring.store.distribute import MOVING, SHARDS, SHARED
from mainspring.store.history import DAYS_AHEAD
from mainspring.store.migrate import LANES_ON_CITUS, installation_of, migrate
from mainspring.store.statements import Statement, all_statements
from mainspring.testing import run_until_idle

from .callers import caller
from .citus import CITUS_URL, connected, on_citus, url_of_node
from .test_plans import OTHER_SAMPLES, SAMPLES

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.connection import Connection


pytestmark = on_citus

# A value for each parameter that test_plans has none for.
MORE_SAMPLES = {
    "action": "'schedule.change'",
    "declared": "null",
    "halting": "'{false,false,false}'",
    "halts_on_dead": "false",
    "have_gates": "'{true,true,true}'",
    "is_spread": "false",
    "is_strict": "false",
    "key": "''",
    "reasons": "'{limit,limit,limit}'",
    "rate": "null",
    "burst": "1",
    "released_at": "0",
    "tokens": "'{1,1,1}'",
    "full": "'{1,1,1}'",
    "scope": "'queue'",
    "rule": "7",
    "is_known": "'{true,true,true}'",
    "at_least": "1000",
    "attempts": "'{1,1,1}'",
    "beat": "null",
    "beats": "'{1,1,1}'",
    "bound": "1000",
    "breaker": "7",
    "breakers": "'{7,7,7}'",
    "busy_seconds": "'{1.5,1.5}'",
    "by_hand": "true",
    "catch_ups": "'{latest,latest,latest}'",
    "change": "'{}'",
    "channels": "'{a}'",
    "checkpoints": "array['1','2','3']::bytea[]",
    "codec": "null",
    "codecs": "'{0,0,0}'",
    "columns": "'{null}'",
    "cursor": "null",
    "definition": "'{}'",
    "delays": "'{1,1,1}'",
    "depths": "'{1,1}'",
    "detail": "'{}'",
    "details": "array['{}','{}','{}']",
    "digest": "'0'",
    "document": "'{}'",
    "done": "1",
    "due_at": "'2099-01-01'",
    "ended_within": "60",
    "every": "8",
    "expected": "1",
    "failures": "'{1,1,1}'",
    "failing_seconds": "null",
    "filter": "'{}'",
    "finished": "'{1,1}'",
    "floor": "1",
    "fractions": "'{0,0.5,1}'",
    "handlers": "'{nothing}'",
    "kept": "'{}'",
    "knows": "19",
    "number": "1999999999",
    "has_probes": "true",
    "holdings": "'{1,1}'",
    "key_values": "'{a,b,c}'",
    "host": "'here'",
    "id": "'00000000-0000-4000-8000-00000000cccc'",
    "ids": "array_fill(gen_random_uuid(), array[3])",
    "installation": "'x'",
    "is_over": "false",
    "job": "1",
    "keeps_plans": "170000",
    "kind": "'cancel'",
    "kinds": "'{worker}'",
    "known": "'{}'",
    "labels": "'{gpu}'",
    "lease_seconds": "30",
    "max_age": "null",
    "max_probe_after": "600",
    "messages": "'{a,b,c}'",
    "most": "100",
    "name": "'nobody'",
    "names": "null",
    "not_before": "'{null,null,null}'",
    "objects": "'{ready}'",
    "older_than": "60",
    "operation": "null",
    "ours": "'{ready}'",
    "parts": "'{0,0,0}'",
    "payload": "null",
    "payloads": "array['','','']::bytea[]",
    "percent": "100",
    "pid": "1",
    "present_line": "null",
    "priority": "null",
    "privileges": "'{select}'",
    "probe_after": "30",
    "queue": "'some'",
    "queues": "'{default}'",
    "revision": "0",
    "schema": "'mainspring'",
    "sizes": "'{1,1,1}'",
    "share": "null",
    "skipped": "0",
    "slots": "1",
    "specs": "array['{}','{}','{}']",
    "spent": "'{1,1,1}'",
    "subjects": "'{a,b,c}'",
    "successes": "'{1,1,1}'",
    "tables": "'{ready}'",
    "tags": "null",
    "texts": "array['[]','[]','[]']",
    "unsettled": "0",
    "value": "'acme'",
    "version": "'test'",
    "wait_millis": "0",
    "widths": "'{1,1,1}'",
    "window": "60",
    "withins": "'{60,60,60}'",
    "workers": "'{00000000-0000-4000-8000-00000000aaaa}'",
}
ONE_LANE = {"lanes": "'{0}'"}  # asked lane by lane: see control/looking.py
INSTANTS = "array_fill(clock_now(), array[3])"
OTHER_SAMPLES_HERE = {
    "limits/put": {"id": "1"},
    "breakers/put": {"id": "1", "failures": "5", "within": "60"},
    "breakers/open": {
        "ids": "'{1,2}'",
        "key_values": "'{a,b}'",
        "attempts": "'{9,9}'",
        "failures": "'{5,5}'",
        "errors": "'{x,y}'",
        "within": "60",
    },
    "breakers/close": {"id": "1"},
    "breakers/openings_of_gates": {"ids": "'{1,2}'"},
    "breakers/probes": {"ids": "'{1,2}'"},
    "breakers/send_probes": {"ids": "'{1,2}'", "sent": "'{1,1}'", "pauses": "'{1,1}'", "now": "0"},
    "breakers/put_off": {"ids": "'{1,2}'", "errors": "'{a,b}'"},
    "limits/spend": {"instants": "'{1,1,1}'"},
    "limits/rules_of_gates": {"ids": "'{1,2}'"},
    "limits/spread": {"ids": "'{1,2}'"},
    "calendars/edited": {"since": "0"},
    **{f"leases/{verb}": {"starts": INSTANTS} for verb in ("bury", "give_back", "retry")},
    "leases/complete": {"starts": "'{0}'", "ends": "'{0}'"},
    "lists/ended": ONE_LANE,
    "lists/unsuccessful": ONE_LANE,
    "notify/send": {"payloads": "'{a}'"},
    "operations/prune": {"older_than": "'1 day'"},
    "operations/start": {"expected": "1"},
    "restoring/lift_fences": {"after": "'00000000-0000-0000-0000-000000000000'"},
    "schedules/backfill": {"versions": "'{1,1,1}'"},
    "schedules/set_cursors": {"nominal_at": INSTANTS, "due_at": INSTANTS},
    "schedules/withdraw_many": {"since": INSTANTS},
    "schedules/create_many": {
        "ids": "array[gen_random_uuid(), gen_random_uuid(), gen_random_uuid()]",
        "names": "'{a,b,c}'",
        "options": "array['{}','{}','{}']",
        "tags": "'{null,null,null}'",
        "catch_up_seconds": "'{1,1,1}'",
        "calendars": "'{null,null,null}'",
        "nominal_at": "array_fill(clock_now(), array[3])",
        "due_at": "array_fill(clock_now(), array[3])",
        "calendars_revision": "'{null,null,null}'",
    },
    "schedules/find_version": {"version": "1"},
    "workers/prune": {"older_than": "'1 day'"},
    "workers/prune_heartbeats": {"older_than": "'1 day'"},
}


async def test_moving_tables_are_distributed_by_lane_side_by_side_and_shared_ones_are_everywhere(
    coordinator: Connection,
) -> None:
    placed = await coordinator.fetch(
        "select relname, partmethod, repmodel, colocationid, column_to_column_name(logicalrelid, partkey) as spread_by"
        " from pg_dist_partition join pg_class on pg_class.oid = logicalrelid"
        " where relnamespace = 'mainspring'::regnamespace and not relispartition"
    )
    moving = [row for row in placed if row["spread_by"] is not None]

    assert {row["relname"] for row in moving} == set(MOVING)
    assert {row["spread_by"] for row in moving} == {"lane"}
    assert len({row["colocationid"] for row in moving}) == 1
    assert {row["relname"] for row in placed if (row["partmethod"], row["repmodel"]) == (b"n", b"t")} == set(SHARED)


async def test_every_shard_has_as_many_lanes_and_every_node_as_many_shards(coordinator: Connection) -> None:
    placed = await coordinator.fetch(
        "select nodeport, shardid, count(*) as lanes from lane join pg_dist_shard_placement"
        " on shardid = get_shard_id_for_distribution_column('ready', lane.lane) group by nodeport, shardid"
    )
    shards = Counter(row["nodeport"] for row in placed)

    assert [row["lanes"] for row in placed] == [LANES_ON_CITUS // SHARDS] * SHARDS
    assert max(shards.values()) - min(shards.values()) <= 1


async def test_every_node_gives_the_installation_the_same_id(coordinator: Connection) -> None:
    here = await installation_of(coordinator)
    for node in await coordinator.fetch("select nodename, nodeport from pg_dist_node"):
        async with connected(url_of_node(node)) as other:
            assert await installation_of(other) == here


async def test_migrating_again_changes_nothing(coordinator: Connection) -> None:
    assert await migrate(coordinator) == []
    assert await coordinator.fetchval("select count(*) from lane") == LANES_ON_CITUS


async def test_history_gets_its_partitions(coordinator: Connection) -> None:
    days, _ = await health.days_with_partitions(coordinator)  # today is one of them; other tests may have made more
    assert days > DAYS_AHEAD
    assert await history.add_partitions(coordinator, days + 1) == 2
    assert await history.add_partitions(coordinator, days + 1) == 0

    placed = await coordinator.fetchval(
        "select count(*) from pg_inherits join pg_dist_partition on logicalrelid = inhrelid"
        " where inhparent = 'mainspring.attempt'::regclass"
    )
    assert placed == 1 + days + 2, "yesterday, and from today on"


@pytest.mark.parametrize("statement", list(all_statements()), ids=lambda statement: statement.name)
async def test_every_statement_is_accepted(coordinator: Connection, statement: Statement) -> None:
    """Citus says what it cannot do when a statement is executed, and not before; and it sees less of a parameter than
    of a value, so statements are prepared, as the program does."""
    name = statement.name
    samples = MORE_SAMPLES | SAMPLES | OTHER_SAMPLES.get(name, {}) | OTHER_SAMPLES_HERE.get(name, {})
    values = ", ".join(samples[parameter] for parameter in statement.parameters)
    undone = coordinator.transaction()
    await undone.start()

    await coordinator.execute(f"prepare tried as {statement.text}")
    await coordinator.execute(f"execute tried{f' ({values})' if values else ''}")

    await undone.rollback()


async def test_runs_are_accepted_claimed_and_completed(citus_app: Mainspring) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    plain = await add.submit_many([{"a": n, "b": 1} for n in range(500)])
    keyed = await add.options(key="once").submit(a=1, b=2)
    assert await add.options(key="once").submit(a=1, b=2) == keyed

    assert await run_until_idle(citus_app) == {"succeeded": 501}
    assert [await handle.result() for handle in [*plain, keyed]] == [*range(1, 501), 3]


async def test_runs_submitted_in_a_transaction_share_its_fate(citus_app: Mainspring) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    own = await asyncpg.connect(CITUS_URL)
    async with own.transaction():
        kept = [await add.options(connection=own, key=key).submit(a=1, b=2) for key in (None, "once")]
    undone = own.transaction()
    await undone.start()
    lost = await add.options(connection=own).submit(a=1, b=2)
    await undone.rollback()
    await own.close()

    assert await run_until_idle(citus_app) == {"succeeded": 2}
    assert [await handle.result() for handle in kept] == [3, 3]
    with pytest.raises(RunNotFound):
        await lost.find()


async def test_a_key_stands_for_one_run_however_many_ask_at_once(citus_app: Mainspring) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    async with Mainspring(CITUS_URL, submitted_by="another process") as other:
        theirs = type(add)(other, add.handler)
        other.registry.add(add.handler)
        handles = await asyncio.gather(
            *(job.options(key="k").submit(a=1, b=2) for _ in range(10) for job in (add, theirs))
        )

    assert len({handle.id for handle in handles}) == 1
    with pytest.raises(IdempotencyConflict, match="'k'"):
        await add.options(key="k").submit(a=1, b=3)
    assert await run_until_idle(citus_app) == {"succeeded": 1}


@pytest.mark.parametrize("is_committed", [True, False])
async def test_who_uses_a_key_of_an_open_transaction_learns_what_became_of_it(
    citus_app: Mainspring, is_committed: bool
) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    async with caller("asyncpg", CITUS_URL) as one:
        job = add.options(connection=one.connection, key="k")
        first, again = await job.submit(a=1, b=2), await job.submit(a=1, b=2)
        second = asyncio.ensure_future(add.options(key="k").submit(a=1, b=2))
        other = await add.options(key="another").submit(a=1, b=2)  # goes on meanwhile
        assert not second.done()
        await (one.commit() if is_committed else one.rollback())

    assert again == first
    assert ((await second) == first) == is_committed
    assert [(await handle.find()).state for handle in (await second, other)] == ["ready", "ready"]


async def test_a_callers_batch_for_many_lanes_is_accepted_in_its_order(citus_app: Mainspring) -> None:
    @citus_app.job
    async def add(a: int, b: int) -> int:
        return a + b

    own = await asyncpg.connect(CITUS_URL)
    handles = await add.options(connection=own, delay=3_600).submit_many([{"a": n, "b": 0} for n in range(2_500)])
    await own.close()

    assert len({lane_of(handle.id) for handle in handles}) == 3
    assert [(await handles[n].find()).payload["a"] for n in (0, 999, 1_000, 2_499)] == [0, 999, 1_000, 2_499]


async def test_failures_are_retried_and_buried(citus_app: Mainspring) -> None:
    @citus_app.job(retry=RetryPolicy(max_attempts=3, first_delay=RetryPolicy().first_delay * 0))
    async def fail() -> None:
        raise ValueError("never works")

    handle = await fail.submit()

    assert await run_until_idle(citus_app) == {"failed": 3}
    with pytest.raises(RunFailed, match="never works"):
        await handle.result()


async def test_waiting_runs_are_found_changed_and_cancelled(citus_app: Mainspring) -> None:
    @citus_app.job
    async def nothing() -> None: ...

    handle = await nothing.options(delay=3600).submit()

    assert (await handle.find()).state == "scheduled"
    assert (await citus_app.runs.change(handle.id, priority=1, at=datetime.now(UTC))).state == "ready"
    assert await handle.cancel(reason="not needed") == "cancelled"
    assert (await handle.find()).state == "cancelled"


async def test_each_mode_of_delivery_has_its_end(citus_app: Mainspring, coordinator: Connection) -> None:
    @citus_app.job(delivery="transactional")
    async def pay(context: Context) -> None:
        async with own.transaction():
            await context.finish(own, "paid")

    @citus_app.job(delivery="at_most_once")
    async def once() -> None: ...

    own = await asyncpg.connect(CITUS_URL)
    paying, losing = await pay.submit(), await once.submit()
    worker_id = uuid4()
    line = await coordinator.fetchval("select line_id from ready where id = $1", losing.id)
    assert await claim(coordinator, lane_of(losing.id), line, worker_id) == 1
    assert (await workers.rescue_all(coordinator, LANES_ON_CITUS, worker_id)).lost == 1

    assert await run_until_idle(citus_app) == {"succeeded": 1}
    assert [(await handle.find()).state for handle in (paying, losing)] == ["succeeded", "lost"]
    await own.close()


async def test_the_runs_of_a_lost_worker_are_rescued(citus_app: Mainspring, coordinator: Connection) -> None:
    @citus_app.job
    async def nothing() -> None: ...

    handles = await nothing.submit_many([{}] * 20)
    worker_id = uuid4()
    await workers.register(
        coordinator,
        worker_id=worker_id,
        host="here",
        pid=1,
        queues=["default"],
        handlers=["nothing"],
        slots=20,
        lease_seconds=30.0,
        version="test",
    )
    line = (await jobs.lines_of(coordinator, tenant_id=DEFAULT_TENANT))["default"]
    claimed = [await claim(coordinator, lane, line, worker_id) for lane in range(LANES_ON_CITUS)]
    assert sum(claimed) == 20

    assert await workers.lose_if_silent(coordinator, worker_id, None)
    assert (await workers.rescue_all(coordinator, LANES_ON_CITUS, worker_id)).rescued == 20
    assert await run_until_idle(citus_app) == {"succeeded": 20}
    assert {(await handle.find()).fence for handle in handles} == {2}


async def claim(connection: Connection, lane: int, line: int, worker_id: UUID) -> int:
    await registered_worker(connection, worker_id)
    rows = await leases.claim(
        connection,
        lane=lane,
        line=line,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=100,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    return len(rows)
