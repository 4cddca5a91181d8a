"""A connection that is made again whenever it breaks, with patience that grows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
from typing import TYPE_CHECKING

from mainspring.store.database import CONNECTION_ERRORS

if TYPE_CHECKING:
    import asyncpg

    from mainspring.clock import Clock
    from mainspring.store.database import Database

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
    ) -> None:
        self._database = database
        self._clock = clock
        self._role = name
        self.name = name  # of the present connection, unlike any other: by it, the server's side can be found
        self._raw_time = raw_time
        self._longest_pause = longest_pause
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._since = 0.0
        self._pause = FIRST_PAUSE

    async def get(self) -> asyncpg.Connection[asyncpg.Record]:
        """The connection; raises DatabaseUnreachable if there is none to be had now."""
        if self._connection is None or self._connection.is_closed():
            name = f"{self._role} {secrets.token_hex(4)}"
            self._connection = await self._database.connect(name, raw_time=self._raw_time)
            self.name = name
            self._since = self._clock.monotonic()
        return self._connection

    async def mend(self) -> None:
        """After a failure: drop what may be broken and wait a little, longer each time until a connection lasts.

        To be let in is not enough: a server whose disk is full accepts connections and nothing else.
        """
        if self._connection is not None:
            if self._clock.monotonic() - self._since >= LASTING_SECONDS:
                self._pause = FIRST_PAUSE
            self._connection.terminate()
            self._connection = None
        await self._clock.sleep(self._pause * random.uniform(0.5, 1.0))
        self._pause = min(self._longest_pause, self._pause * 2)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*CONNECTION_ERRORS):
                async with asyncio.timeout(2):
                    await connection.close()
            connection.terminate()
