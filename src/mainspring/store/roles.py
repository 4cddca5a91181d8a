"""What the database's roles find and may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from mainspring.store.database import SCHEMA, transaction
from mainspring.store.distribute import MOVING, SHARED
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncpg import Record

    from mainspring.store.database import Connection

# ── the role that is named like our schema ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Namesake:
    """A role named like our schema. With `"$user"` in its search path our tables hide an application's own `job`."""

    search_path: str | None  # None: nobody set one for it, so the server's counts
    part: str  # the statement that lets it find an application's tables and not ours
    keep: str  # the statement that lets it find what it found before

    @property
    def is_misled(self) -> bool:
        return self.search_path is None or "$user" in self.search_path


async def namesake(connection: Connection) -> Namesake | None:
    row = await load("roles/search_path").fetchrow(connection, schema=SCHEMA)
    return None if row is None else Namesake(**row)


async def strangers(connection: Connection) -> list[Record]:
    """Tables of others in our schema, each with the statement that moves it."""
    return await load("roles/strangers").fetch(connection, schema=SCHEMA, ours=[*MOVING, *SHARED])


async def keep_names_apart(connection: Connection, say: Callable[[str], None]) -> None:
    """Let our namesake find an application's tables and not ours, unless someone decided about its search path."""
    role = await namesake(connection)
    if role is None or role.search_path is not None:
        return
    # An application that made its tables in our schema must go on finding them: it may move them when it likes.
    statement = role.keep if await strangers(connection) else role.part
    try:
        async with transaction(connection):
            await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError as error:
        say(f"the role {SCHEMA} finds Mainspring's tables before an application's ({error}): see mainspring doctor")
    else:
        say(f"what the role {SCHEMA} finds: {statement}")
