"""On a Citus cluster a lane, with all that lies in it, moves to another node while its runs are executed."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from typing import TYPE_CHECKING

from mainspring import Mainspring, RunFilter, State
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.store.connection import patience
from mainspring.store.migrate import LANES_ON_CITUS
from mainspring.testing import run_until_idle

from .citus import CITUS_URL, connected, on_citus

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

pytestmark = on_citus

LANE = 7
WHERE = """
    select shardid, nodename, nodeport from pg_dist_shard_placement
    where shardid = get_shard_id_for_distribution_column('ready', $1::smallint)
"""
ELSEWHERE = "select nodename, nodeport from pg_dist_node where shouldhaveshards and nodeport <> $1 order by 2 limit 1"
MOVE = "select citus_move_shard_placement($1, $2, $3, $4, $5)"


async def move_lane() -> int:
    """Move the lane to another node; answers to which."""
    async with connected(CITUS_URL) as connection:
        here = await connection.fetchrow(WHERE, LANE)
        there = await connection.fetchrow(ELSEWHERE, here["nodeport"])
        with patience(connection, 200):
            await connection.execute(
                "set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0"
            )
            await connection.execute(
                MOVE, here["shardid"], here["nodename"], here["nodeport"], there["nodename"], there["nodeport"]
            )
        return int(there["nodeport"])


def keys_of_lane(first: int, count: int) -> list[str]:
    """A run with an idempotency key lives in the lane of that key."""
    keys = (f"{first} {n}" for n in itertools.count())
    return list(
        itertools.islice((key for key in keys if lane_of_key(DEFAULT_TENANT, key, LANES_ON_CITUS) == LANE), count)
    )


async def test_a_lane_moves_while_its_runs_are_executed(citus_app: Mainspring, coordinator: Connection) -> None:
    executed: Counter[int] = Counter()

    @citus_app.job
    async def note(n: int) -> None:
        executed[n] += 1

    submitted = 0
    for _ in range(2):  # there and back
        moving = asyncio.ensure_future(move_lane())
        has_moved = False
        while not has_moved:
            has_moved = moving.done()  # and once more when it has
            for key in keys_of_lane(submitted, 20):
                assert lane_of((await note.options(key=key).submit(n=submitted)).id) == LANE
                submitted += 1
            await run_until_idle(citus_app)
        assert (await coordinator.fetchrow(WHERE, LANE))["nodeport"] == await moving

    assert executed == Counter(range(submitted))
    assert await citus_app.runs.count(RunFilter(states=(State.SUCCEEDED,))) == (submitted, True)
    assert await coordinator.fetchval("select count(*) from attempt where lane = $1", LANE) > 0
