"""What the database's roles find and may do."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.errors import PermissionMissing, shortened
from mainspring.store.connection import transaction
from mainspring.store.database import SCHEMA
from mainspring.store.distribute import MOVING, SHARED
from mainspring.store.grants import RoleKind, functions, privileges
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mainspring.store.connection import Connection, Record

# ── what roles may do ───────────────────────────────────────────────────────────────────────────────────────────


async def lacking(connection: Connection) -> dict[RoleKind, set[tuple[str, str]]]:
    """What the present role lacks for each kind: privileges, each with the table or function it is about."""
    wanted = [(kind, *each) for kind in RoleKind for each in _wanted(kind)]
    kinds, names, objects, columns = zip(*wanted, strict=True)
    rows = await load("roles/lacking").fetch(
        connection, schema=SCHEMA, kinds=kinds, privileges=names, objects=objects, columns=columns
    )
    lacks: dict[RoleKind, set[tuple[str, str]]] = {kind: set() for kind in RoleKind}
    for row in rows:
        lacks[RoleKind(row["kind"])].add((row["privilege"], row["object"]))
    return lacks


def _wanted(kind: RoleKind) -> Iterator[tuple[str, str, str | None]]:
    """A privilege, what it is about, and its column if it is about one only."""
    for privilege, table in privileges(kind):
        name, _, column = privilege.partition(" ")
        yield name, table, column.strip("()") or None
    for signature in functions(kind):
        yield "execute", signature, None


async def keepers(connection: Connection) -> list[Record]:
    """The roles of keepers at work, and whether each may make partitions of history."""
    return await load("roles/keepers").fetch(connection)


async def present_role(connection: Connection) -> str:
    return str(await connection.fetchval("select current_user"))


async def refuse_without_usage(connection: Connection) -> None:
    """Without USAGE on our schema its tables look as if they were not there: then this says what is really amiss."""
    may_use = await connection.fetchval(
        "select has_schema_privilege(oid, 'usage') from pg_namespace where nspname = $1", SCHEMA
    )
    if may_use is False:
        raise await permission_missing(connection, f"it lacks USAGE on the schema {SCHEMA}")


async def permission_missing(connection: Connection, cause: object) -> PermissionMissing:
    role = await present_role(connection)
    return PermissionMissing(
        f"The role {shortened(role)} may not work with Mainspring's tables: {cause}.",
        hint=f"As the role that migrates, execute what this prints: {grants_command(role)}",
        role=role,
    )


def grants_command(role: str, kind: RoleKind | None = None) -> str:
    """What to type for the SQL that gives a role what it lacks."""
    wanted = "|".join(RoleKind) if kind is None else kind.value
    return f"mainspring grants {shlex.quote(role)} --for {wanted}"


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
    except PermissionMissing as error:
        why = error.fields["said"]
        say(f"the role {SCHEMA} finds Mainspring's tables before an application's ({why}): see mainspring doctor")
    else:
        say(f"what the role {SCHEMA} finds: {statement}")
