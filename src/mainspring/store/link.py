"""A connection that is made again whenever it breaks, with patience that grows."""

from __future__ import annotations

import random
import secrets
from typing import TYPE_CHECKING

from mainspring.errors import NodeUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.clock import Clock
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.store.reach import Reach

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LASTING_SECONDS = 1.0  # a connection that served so long was a good one


class Link:
    """One lasting connection to the database, owned by one loop."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        name: str,
        *,
        raw_time: bool = False,
        longest_pause: float = LONGEST_PAUSE,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._role = name
        self.name = name  # of the present connection, unlike any other: by it, the server's side can be found
        self._raw_time = raw_time
        self._longest_pause = longest_pause
        self._settings = settings
        self._connection: Connection | None = None
        self._since = 0.0
        self._pause = FIRST_PAUSE

    @property
    def full_name(self) -> str:
        """By which the server knows the present connection."""
        return f"mainspring {self.name}"

    async def get(self) -> Connection:
        """The connection; raises a StoreError if there is none to be had now."""
        if self._connection is None or self._connection.is_closed():
            name = f"{self._role} {secrets.token_hex(4)}"
            self._connection = await self._database.connect(name, raw_time=self._raw_time, settings=self._settings)
            self.name = name
            self._since = self._clock.monotonic()
        return self._connection

    @property
    def reach(self) -> Reach:
        """Which lanes are worth asking."""
        return self._database.reach

    async def leave_out(self, error: NodeUnreachable) -> bool:
        """Leave out the lanes of a node that is down; answers whether that is news."""
        return await self._database.leave_out(error)

    async def mend(self, error: BaseException | None = None) -> None:
        """After a failure: drop what may be broken and wait a little, longer each time until a connection lasts.

        To be let in is not enough: a server whose disk is full accepts connections and nothing else. When a node of a
        cluster was found to be down, nothing is broken and nobody waits: its lanes are left out.
        """
        if error is not None and await self._database.has_repaired(error):
            return
        is_node = isinstance(error, NodeUnreachable)  # the connection itself is a good one
        if isinstance(error, NodeUnreachable) and await self.leave_out(error):
            return
        if self._connection is not None and not is_node:
            if self._clock.monotonic() - self._since >= LASTING_SECONDS:
                self._pause = FIRST_PAUSE
            self._drop(self._connection)
        await self._clock.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(self._longest_pause, self._pause * 2)

    def _drop(self, connection: Connection) -> None:
        """End the connection here; its server's side is ended by whoever connects next, broken or not."""
        self._database.abandon(self.full_name)
        connection.terminate()
        self._connection = None

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
