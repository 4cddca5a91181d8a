"""On a Citus cluster a hot act is one command to the one node that has its lane, and that node asks no other.

From the coordinator it is traced what is sent to nodes. The same act, asked of the node itself, sends nothing at all.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from tests.registering import registered_worker

from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.run import PRIORITIES, NewRun
from mainspring.model.unique import Wish
from mainspring.store import completions, dead, leases, queues, runs, schedule_firing, schedulers, submissions, workers
from mainspring.store.callers import callers_connection
from mainspring.store.connection import transaction
from mainspring.store.distribute import MOVING, SHARDS
from mainspring.store.schedule_firing import Firing, Skip
from mainspring.store.submissions import new_run_ids

from .citus import CITUS_URL, connected, on_citus, url_of_node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mainspring.store.connection import Connection

    Act = Callable[[Connection], Awaitable[Any]]

pytestmark = on_citus

LANE, JOB, LINE, RUNS = 7, 1, 1, 20
ACT = dead.Act(DEFAULT_TENANT, "tester", "{}")
WAITING = """
    select id from ready where lane = $1 union all select id from later where lane = $1
    union all select id from held where lane = $1
"""
TEMPLATE = NewRun(tenant_id=1, job_id=JOB, job_version=1, line_id=LINE, priority=5, payload=b"{}")
# A key that stands for a run already.
USED = TEMPLATE._replace(key="used", digest=b"what it is")
KEPT = "insert into idempotency (lane, tenant_id, key, run_id, digest) values ($1, 1, 'used', $2, $3)"
# And a unique key that a waiting run holds.
WISH = Wish("customer\tacme", "waiting_or_running", None, None, False)
UNIQUE = TEMPLATE._replace(wish=WISH)
HELD = """
    insert into unique_key (lane, tenant_id, job_id, key, run_id, submission, taken_at, check_at)
    values ($1, 1, 1, E'customer\\tacme', $2, $2, clock_now(), clock_now())
"""
DEAD = "select id from dead where lane = $1"
AT_HOME = UUID("00000000-0000-4000-8000-000000000007")  # its home is the lane of all the others
WORKER, LOST = UUID("00000000-0000-4000-8000-00000000aaaa"), UUID("00000000-0000-4000-8000-00000000bbbb")
# Runs of one lane in each place. Some of them are too old, and some staged.
FILL = """
    create temporary table few on commit drop as
    select 7::smallint as lane, n, 1 as tenant_id, 1 as job_id, 1 as job_version, 1 as line_id, 5::smallint as priority,
           '{}'::bytea as payload, clock_now() as now
    from generate_series(1, 20) as n;
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload from few;
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, rank, expires_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, 9000000000000000, now
    from few;
    insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now from few;
    insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at, reason, expires_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now, 'no-handler',
           case when n % 2 = 0 then now end
    from few;
    insert into dead (lane, id, tenant_id, job_id, job_version, line_id, priority, payload, due_at)
    select lane, gen_random_uuid(), tenant_id, job_id, job_version, line_id, priority, payload, now from few;
"""
# A schedule of that lane whose cursor is due.
SCHEDULE = UUID("00000000-0000-4000-8000-00000000cccc")
DUE_AT = datetime.now(UTC).replace(microsecond=0)
SCHEDULED = """
    insert into schedule (lane, id, tenant_id, name, job_id, spec, payload, created_by, changed_by)
    values ($1, $2, 1, 'daily', 1, '{}', '{}', 'tester', 'tester')
"""
# A run of that lane that has ended.
OVER = "select run_id as id from attempt where lane = $1 and state = 'cancelled'"
ENDED = """
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, codec, payload, submitted_at)
    values ($1, $2, 1, 1, 1, 1, 1, 1, 5, 'cancelled', 'cancelled', $3, 1, '{}', $3)
"""
CURSOR = "insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata) values ($1, $2, $3, $3, '2026a')"


async def submit_under_a_key(connection: Connection) -> None:
    keyed = TEMPLATE._replace(key="once", digest=b"what it is")
    assert await verdicts(connection, [keyed]) == ["new"]


async def submit_under_a_key_again(connection: Connection) -> None:
    """The key of a run that is there before all acts."""
    assert await verdicts(connection, [USED]) == ["same"]


async def submit_under_a_unique_key(connection: Connection) -> None:
    assert await verdicts(connection, [UNIQUE._replace(wish=WISH._replace(key="customer\tbolt"))]) == ["new"]


async def submit_under_a_unique_key_again(connection: Connection) -> None:
    """The key of a run that waits."""
    assert await verdicts(connection, [UNIQUE]) == ["earlier"]


async def submit_debounced_again(connection: Connection) -> None:
    """The run that waits gets what this one brings."""
    last = UNIQUE._replace(delay=60.0, wish=WISH._replace(rule="debounce", seconds=60.0, most=600.0))
    assert await verdicts(connection, [last]) == ["replaced"]


async def submit_for_later(connection: Connection) -> None:
    assert await verdicts(connection, [TEMPLATE._replace(delay=60.0)] * RUNS) == ["new"] * RUNS


async def submit_what_expires(connection: Connection) -> None:
    assert await verdicts(connection, [TEMPLATE._replace(max_age=60.0)] * RUNS) == ["new"] * RUNS


async def submit_to_strangers(connection: Connection) -> None:
    """Whether the numbers of jobs are right is compared where the runs would be."""
    known = submissions.known_document(await installation(), {JOB: "nobody's"}, {})
    assert await verdicts(connection, [TEMPLATE._replace(delay=60.0)], known) == ["unknown"]


async def verdicts(connection: Connection, some: list[NewRun], known: str | None = None) -> list[str]:
    if known is None:
        known = submissions.known_document(await installation(), {}, {})
    ids = new_run_ids(len(some), LANE, DUE_AT)
    return [each.verdict for each in await submissions.submit_items(connection, ids, some, known, key_wait="1s")]


async def installation() -> str:
    [row] = await elsewhere("select installation_id() as id")
    return str(row["id"])


async def claim(connection: Connection, worker_id: UUID = WORKER) -> None:
    claimed = await leases.claim(
        connection,
        lane=LANE,
        line=LINE,
        priorities=PRIORITIES,
        fronts=[0] * len(PRIORITIES),
        count=100,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    assert len(claimed) == RUNS


async def promote(connection: Connection) -> None:
    groups = await runs.promote(connection, LANE, [runs.LONG_AGO] * len(PRIORITIES), 100)
    assert sum(group["runs"] for group in groups) == 2 * RUNS


async def expire(connection: Connection) -> None:
    assert await runs.expire(connection, LANE, 100) == 2 * (RUNS + RUNS // 2)


async def release(connection: Connection) -> None:
    groups = await runs.release(connection, LANE, {(JOB, LINE): 0.0}, 100)
    assert sum(group["runs"] for group in groups) == 2 * RUNS


async def rescue(connection: Connection) -> None:
    assert (await workers.rescue(connection, LANE, LOST, 10)).rescued == RUNS


async def cancel(connection: Connection) -> None:
    said: dict[str, Any] = {"tenant_id": DEFAULT_TENANT, "actor": "tester", "reason": "not needed"}
    assert len(await runs.cancel_waiting(connection, LANE, await ids_in(WAITING), **said)) == 7 * RUNS


async def change(connection: Connection) -> None:
    said: dict[str, Any] = {"tenant_id": DEFAULT_TENANT, "actor": "tester", "detail": "{}"}
    waiting = await ids_in(WAITING)
    assert len(await runs.change(connection, LANE, waiting, {"priority": 1}, **said)) == len(waiting) == 7 * RUNS


async def rerun(connection: Connection) -> None:
    said: dict[str, Any] = {"tenant_id": DEFAULT_TENANT, "actor": "tester", "detail": "{}"}
    [over] = await ids_in(OVER)
    assert len(await runs.rerun(connection, LANE, [over], new_run_ids(1, LANE, DUE_AT), **said)) == 1


async def requeue(connection: Connection) -> None:
    assert len(await dead.requeue(connection, LANE, await ids_in(DEAD), ACT)) == 2 * RUNS


async def purge(connection: Connection) -> None:
    assert len(await dead.purge(connection, LANE, await ids_in(DEAD), ACT, reason="hopeless")) == 2 * RUNS


async def complete(connection: Connection) -> None:
    [lease] = await elsewhere("select id from lease where lane = $1 and worker_id = $2", LANE, LOST)
    whole = completions.Completion(leases.Lease(LANE, lease["id"], RUNS), [0] * RUNS, [0] * RUNS, [None] * RUNS, [])
    assert (await completions.complete(connection, LOST, [whole])).leases == {lease["id"]}


async def fire(connection: Connection) -> None:
    [run_id] = new_run_ids(1, LANE, DUE_AT)
    next_at = DUE_AT + timedelta(days=1)
    firing = Firing(SCHEDULE, 0, DUE_AT, DUE_AT, DUE_AT, None, run_id, 0, next_at, next_at)
    skip = Skip(DUE_AT - timedelta(hours=2), DUE_AT - timedelta(hours=1), "superseded", run_id)
    groups = await schedule_firing.fire(connection, LANE, [firing], [(SCHEDULE, skip)], [TEMPLATE], "2026a", packs=True)
    assert [group["runs_fired"] for group in groups] == [1]


async def beat(connection: Connection) -> None:
    assert await workers.send_heartbeats(connection, [AT_HOME]) == {AT_HOME: False}


async def tell_tally(connection: Connection) -> None:
    await queues.tell(connection, AT_HOME, {1: (10, 1.0, 3), 2: (5, 1.0, 0)})


async def tell_unsettled(connection: Connection) -> None:
    await workers.tell_unsettled(connection, AT_HOME, 7, None)


async def beat_scheduler(connection: Connection) -> None:
    await schedulers.beat(connection, AT_HOME, host="here", pid=1, version="test")


async def ids_in(query: str) -> list[UUID]:
    return [row["id"] for row in await elsewhere(query, LANE)]


async def elsewhere(query: str, *values: object) -> list[Any]:
    """Asked for over another connection: what is traced is the act."""
    async with connected(CITUS_URL) as other:
        return await other.fetch(query, *values)


ACTS: dict[str, Act] = {
    each.__name__: each
    for each in (
        submit_under_a_key,
        submit_under_a_key_again,
        submit_under_a_unique_key,
        submit_under_a_unique_key_again,
        submit_debounced_again,
        submit_for_later,
        submit_what_expires,
        submit_to_strangers,
        claim,
        promote,
        expire,
        release,
        rescue,
        cancel,
        change,
        rerun,
        requeue,
        purge,
        complete,
        fire,
        beat,
        tell_tally,
        tell_unsettled,
        beat_scheduler,
    )
}

SUBMISSIONS = (
    submit_under_a_key,
    submit_under_a_key_again,
    submit_under_a_unique_key,
    submit_under_a_unique_key_again,
    submit_debounced_again,
    submit_for_later,
    submit_what_expires,
)
WITHIN_TRANSACTIONS = (*SUBMISSIONS, cancel, requeue, purge)


@pytest.fixture
async def scene(coordinator: Connection) -> Connection:
    """A cluster with runs of one lane in every place."""
    await coordinator.execute(f"truncate {', '.join(table for table in MOVING if table != 'lane')}")
    for worker_id in (WORKER, LOST, AT_HOME):
        await registered_worker(coordinator, worker_id)
    await coordinator.execute(FILL)
    await claim(coordinator, LOST)
    await coordinator.execute(FILL)
    await coordinator.execute(KEPT, LANE, *new_run_ids(1, LANE, DUE_AT), USED.digest)
    await coordinator.execute(
        HELD, LANE, await coordinator.fetchval("select id from later where lane = $1 limit 1", LANE)
    )
    await coordinator.execute(SCHEDULED, LANE, SCHEDULE)
    await coordinator.execute(CURSOR, LANE, SCHEDULE, DUE_AT)
    await coordinator.execute(ENDED, LANE, *new_run_ids(1, LANE, DUE_AT), DUE_AT)
    return coordinator


@asynccontextmanager
async def traced(connection: Connection) -> AsyncIterator[list[str]]:
    """What this connection sends to nodes meanwhile, each command with the node, and the connection, it goes to."""
    sent: list[str] = []

    def note(_: object, message: Any) -> None:
        if message.message.startswith("issuing "):
            sent.append(f"{message.detail}: {message.message.removeprefix('issuing ')}")

    connection.add_log_listener(note)
    await connection.execute("set client_min_messages = log; set citus.log_remote_commands = on")
    try:
        yield sent
    finally:
        await connection.execute("set client_min_messages = warning; set citus.log_remote_commands = off")
        connection.remove_log_listener(note)


async def lanes_of_two_nodes(coordinator: Connection) -> list[int]:
    rows = await coordinator.fetch(
        "select distinct on (nodeport) nodeport, lane from generate_series(0, 63) as lane join pg_dist_shard_placement"
        " on shardid = get_shard_id_for_distribution_column('ready', lane::smallint) order by nodeport, lane limit 2"
    )
    return sorted(row["lane"] for row in rows)


async def node_of_lane(coordinator: Connection) -> str:
    """The URL of the node that has the lane."""
    row = await coordinator.fetchrow(
        "select nodename, nodeport from pg_dist_shard_placement"
        " where shardid = get_shard_id_for_distribution_column('ready', $1::smallint)",
        LANE,
    )
    assert row is not None
    return url_of_node(row)


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_a_hot_act_is_one_command_to_one_node(scene: Connection, act: Act) -> None:
    async with traced(scene) as sent:
        await act(scene)

    assert len(sent) == 1, sent  # neither a transaction around it nor PREPARE TRANSACTION


@pytest.mark.parametrize("act", WITHIN_TRANSACTIONS, ids=lambda act: act.__name__)
async def test_within_a_transaction_it_is_one_command_to_one_node_that_commits_once(
    scene: Connection, act: Act
) -> None:
    async with traced(scene) as sent, transaction(scene):
        await act(scene)

    assert len(sent) == 3, sent
    assert "BEGIN TRANSACTION" in sent[0]
    assert sent[2].endswith("COMMIT")


async def test_acts_in_lanes_of_two_nodes_commit_together(scene: Connection) -> None:
    lanes = await lanes_of_two_nodes(scene)
    async with traced(scene) as sent, transaction(scene):
        for lane in lanes:
            await dead.purge(scene, lane, [], ACT, reason="hopeless")

    assert len([command for command in sent if "purge_runs" in command]) == 2, sent
    assert len([command for command in sent if "PREPARE TRANSACTION" in command]) == 2, sent


async def test_submissions_of_a_caller_are_one_command_each_within_its_transaction(scene: Connection) -> None:
    known = submissions.known_document(await installation(), {}, {})
    caller = callers_connection(scene)
    async with traced(scene) as sent, transaction(scene):
        for some in ([USED._replace(key="theirs")], [TEMPLATE._replace(delay=60.0)] * RUNS):
            await caller.submit(new_run_ids(len(some), LANE, DUE_AT), some, known)

    assert len(sent) == 4, sent
    assert len([command for command in sent if "submit_runs" in command]) == 2
    assert sent[3].endswith("COMMIT")


async def test_what_a_caller_submits_to_lanes_of_two_nodes_is_one_command_to_each(scene: Connection) -> None:
    known = submissions.known_document(await installation(), {}, {})
    ids = [run_id for lane in await lanes_of_two_nodes(scene) for run_id in new_run_ids(RUNS, lane, DUE_AT)]
    async with traced(scene) as sent:  # without a transaction: all or none
        await callers_connection(scene).submit(ids, [TEMPLATE._replace(delay=60.0)] * len(ids), known)

    assert len([command for command in sent if "submit_runs" in command]) == 2, sent
    assert len([command for command in sent if "PREPARE TRANSACTION" in command]) == 2, sent


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_the_node_of_a_lane_asks_no_other(scene: Connection, act: Act) -> None:
    async with connected(await node_of_lane(scene)) as node, traced(node) as sent:
        await act(node)

    assert sent == []


async def test_a_look_at_all_lanes_takes_one_connection_to_each_node(coordinator: Connection) -> None:
    nodes = await coordinator.fetchval("select count(*) from pg_dist_node where shouldhaveshards")
    async with traced(coordinator) as sent:
        await coordinator.fetchval("select count(*) from lane cross join generate_series(1, 300000)")

    assert len([command for command in sent if "generate_series" in command]) == SHARDS
    assert len({command.partition(": SELECT")[0] for command in sent if "generate_series" in command}) == nodes
