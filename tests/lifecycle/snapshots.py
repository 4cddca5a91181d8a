"""What tables contain, kept under a name and put back: quicker than to do again what led to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.store.connection import Connection

TABLES = (
    "later", "held", "ready", "lease", "dead", "attempt", "idempotency", "audit", "worker", "worker_heartbeat", "slot",
    "dependency", "stale", "occurrence", "cursor", "unique_key",
)  # fmt: skip
CLEARING = "".join(f"delete from {table};" for table in TABLES)  # noqa: S608  names of ours


class Snapshots:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._restoring: dict[str, str] = {}  # by name, what puts it back

    def __contains__(self, name: str) -> bool:
        return name in self._restoring

    async def clear(self) -> None:
        await self._connection.execute(CLEARING)

    async def keep(self, name: str) -> None:
        """What there is now."""
        await self._connection.execute("create schema if not exists snapshot")
        statements = [CLEARING]
        for table in TABLES:
            if await self._connection.fetchval(f"select exists (select from {table})"):  # noqa: S608
                copy = f"snapshot.{table}_{len(self._restoring)}"
                await self._connection.execute(f"create table {copy} as table {table}")
                statements.append(f"insert into {table} table {copy};")
        self._restoring[name] = "".join(statements)

    async def restore(self, name: str) -> None:
        await self._connection.execute(self._restoring[name])
