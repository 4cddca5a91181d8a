"""Which lanes can be reached. On a plain server all of them can, or nothing; on a Citus cluster a node may be down.

Whoever works lane by lane leaves out the lanes of such a node for a little while, and goes on with the others. Nothing
is decided by it: what is left out waits, and a lane that is asked too early fails once more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.errors import NodeUnreachable
    from mainspring.store.connection import Connection

log = structlog.get_logger()

AGAIN_SECONDS = 2.0  # a refused connection costs little
LONGEST_SECONDS = 60.0
QUIET_SECONDS = 10.0  # between two outages that the log tells apart
COST_SHARE = 10.0  # a node that does not even refuse may take so large a part of the time to be asked, and no more

# Not in a file of its own: a plain server has none of these tables.
_LANES_OF_NODE = """
    select lane from generate_series(0, (select value::int from setting where name = 'lanes') - 1) as lane
    join pg_catalog.pg_dist_shard on logicalrelid = 'mainspring.lane'::regclass
     and pg_catalog.worker_hash(lane::smallint) between shardminvalue::int and shardmaxvalue::int
    join pg_catalog.pg_dist_placement using (shardid) join pg_catalog.pg_dist_node using (groupid)
    where nodename || ':' || nodeport = $1
"""


class Absence(NamedTuple):
    """Since when, and until when, a lane is left out."""

    since: float
    until: float


class Reach:
    """Lanes that are left out. One for all connections of a process to a database."""

    def __init__(self) -> None:
        self._away: dict[int, Absence] = {}
        self._over_at = 0.0  # from when on nothing of it matters any more

    @property
    def has_all(self) -> bool:
        """Whether no lane is left out, nor was one lately: as on a plain server."""
        if self._away and self._over_at <= asyncio.get_running_loop().time():
            self._away = {}
        return not self._away

    def has(self, lane: int) -> bool:
        return not self._away or not self._was_left_out(lane, asyncio.get_running_loop().time())

    def lanes(self, lanes: Iterable[int]) -> list[int]:
        """Those of these lanes that are not left out."""
        return list(lanes) if not self._away else [lane for lane in lanes if self.has(lane)]

    def first(self, lanes: Sequence[int]) -> int:
        """The first of these lanes that is not left out; if all are, the first."""
        return next(filter(self.has, lanes), lanes[0])

    def _was_left_out(self, lane: int, at: float) -> bool:
        span = self._away.get(lane)
        return span is not None and span.since <= at < span.until

    async def leave_out(self, connection: Connection, error: NodeUnreachable) -> bool:
        """Leave out the lanes of a node that could not be reached. Answers whether it is worth asking again: not, if
        they were left out before, and the node was needed all the same.
        """
        lanes = [row["lane"] for row in await connection.fetch(_LANES_OF_NODE, error.node)]
        now = asyncio.get_running_loop().time()
        is_worth_it = any(not self._was_left_out(lane, error.asked_at) for lane in lanes)
        if any(self.has(lane) for lane in lanes):
            self._say_if_news(error.node, lanes, now)
            pause = max(AGAIN_SECONDS, (error.failed_at - error.asked_at) * COST_SHARE)
            span = Absence(now, now + min(LONGEST_SECONDS, pause))
            self._away |= dict.fromkeys(lanes, span)
            self._over_at = max(self._over_at, span.until + QUIET_SECONDS)
        return is_worth_it

    def _say_if_news(self, node: str, lanes: list[int], now: float) -> None:
        latest = max((self._away[lane].until for lane in lanes if lane in self._away), default=float("-inf"))
        if latest < now - QUIET_SECONDS:
            log.warning("a node of the database cannot be reached", node=node, lanes=len(lanes))
