"""What a database may say, and what it means to us: one table for every class of error.

    DatabaseUnreachable   wait and reconnect
    NodeUnreachable       go on with what is on other nodes of the cluster, and try again
    OutcomeUnknown        look whether it happened: a node did not answer COMMIT
    DatabaseBusy          nothing happened; do it again
    PartitionMissing      make it, do it again
    DatabaseUnsuitable    refuse; a person has to change something (workers wait for that)
    SchemaMismatch        refuse; migrate
    ValueNotStorable      refuse that value; everything else goes on
    RowExists             someone was faster: look again
    StoreError            anything else: refuse, with its SQLSTATE (workers wait and try again)

No error of our driver leaves this package; on a caller's own connection, what concerns the caller's transaction stays
what the caller's driver says (`callers.py`). None of these ends a worker, spends an attempt or counts as a crash.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import asyncpg

from mainspring.errors import (
    DatabaseBusy,
    DatabaseUnreachable,
    DatabaseUnsuitable,
    MainspringError,
    NodeUnreachable,
    OutcomeUnknown,
    PartitionMissing,
    PermissionMissing,
    RowExists,
    SchemaMismatch,
    StoreError,
    ValueNotStorable,
)

# Whatever the database may do to whoever uses it through this package. Long-lived loops wait and try again.
DATABASE_ERRORS = (StoreError, OutcomeUnknown)
# And what it says of values: a loop that gave it none of its own (a claim, a look) has nobody to tell, and waits too.
ALL_DATABASE_ERRORS = (*DATABASE_ERRORS, ValueNotStorable)

_UNREACHABLE = "Check that the server runs and that MAINSPRING_DATABASE_URL names it."
_AGAIN = "Try again."
_MIGRATE = "Run: mainspring migrate"


class Meaning(NamedTuple):
    """What to raise for an SQLSTATE. `{}` in the words stands for what the server said."""

    kind: type[MainspringError]
    words: str
    hint: str | None = None
    code: str | None = None


# The longest prefix of an SQLSTATE counts.
_MEANINGS = {
    "08": Meaning(DatabaseUnreachable, "The connection to PostgreSQL broke: {}.", _UNREACHABLE),
    "57P": Meaning(DatabaseUnreachable, "PostgreSQL ended the connection: {}.", _UNREACHABLE),
    "53300": Meaning(
        DatabaseUnreachable,
        "PostgreSQL has no connection left: {}.",
        "Raise max_connections, or run fewer processes.",
        "too-many-connections",
    ),
    "25P": Meaning(DatabaseBusy, "PostgreSQL ended a transaction: {}.", _AGAIN),
    "25P03": Meaning(DatabaseUnreachable, "PostgreSQL ended an idle transaction: {}.", _AGAIN),
    "25P04": Meaning(DatabaseUnreachable, "PostgreSQL ended a long transaction: {}.", _AGAIN),
    "40": Meaning(DatabaseBusy, "PostgreSQL rolled a transaction back: {}.", _AGAIN),
    "55P03": Meaning(DatabaseBusy, "Someone holds a lock on what is needed: {}.", "Look for who: mainspring doctor"),
    "55006": Meaning(DatabaseBusy, "Someone uses what is needed: {}.", _AGAIN),
    "57014": Meaning(DatabaseBusy, "PostgreSQL cancelled a statement: {}.", _AGAIN),
    "53": Meaning(DatabaseBusy, "PostgreSQL is short of something: {}.", _AGAIN),
    "53100": Meaning(
        DatabaseUnsuitable,
        "The disk of PostgreSQL is full; nothing was accepted.",
        "Make room on that disk; what waits goes on by itself.",
        "database-disk-full",
    ),
    "25006": Meaning(
        DatabaseUnsuitable,
        "The server accepts no writes (it is a standby, or read-only).",
        "Connect to the primary: add target_session_attrs=read-write to MAINSPRING_DATABASE_URL.",
        "database-read-only",
    ),
    "28": Meaning(
        DatabaseUnsuitable,
        "PostgreSQL refused the user: {}.",
        "Check user and password in MAINSPRING_DATABASE_URL.",
        "database-login-refused",
    ),
    "3D000": Meaning(
        DatabaseUnsuitable, "{}.", "Create the database, or correct MAINSPRING_DATABASE_URL.", "database-missing"
    ),
    "42501": Meaning(
        PermissionMissing,
        "This role may not do what is needed: {}.",
        "As the role that migrates, execute what this prints: mainspring grants ROLE",
    ),
    "3F000": Meaning(SchemaMismatch, "This database has no Mainspring schema: {}.", _MIGRATE, "schema-missing"),
    "42P01": Meaning(SchemaMismatch, "The schema lacks a table: {}.", _MIGRATE, "schema-missing"),
    "42883": Meaning(SchemaMismatch, "The schema lacks a function: {}.", _MIGRATE),
    "42703": Meaning(SchemaMismatch, "The schema lacks a column: {}.", _MIGRATE),
    "42704": Meaning(SchemaMismatch, "The schema lacks something: {}.", _MIGRATE),
    "22": Meaning(ValueNotStorable, "PostgreSQL cannot store a value: {}."),
    "54": Meaning(ValueNotStorable, "PostgreSQL cannot store a value: {}."),
    "23505": Meaning(RowExists, "Someone wrote the same at the same moment: {}.", _AGAIN),
    "26000": Meaning(
        StoreError,
        "A prepared statement is gone: {}.",
        "A pooler between us and PostgreSQL mixes up sessions: give workers a direct connection.",
    ),
}
_MOVED = Meaning(DatabaseBusy, "A lane has just moved to another node of the database cluster: {}.", _AGAIN)
_UNKNOWN = Meaning(StoreError, "PostgreSQL reported an error: {}.", "Look into the server's log.")
_HISTORY = ("attempt", "log")
_CHECK_VIOLATION = "23514"
# How a coordinator says that a node did not answer COMMIT. The only node of a transaction prepares nothing: it may have
# committed.
_COMMIT_UNANSWERED = "could not commit transaction for shard"
# How a node says that the lane it is to act upon has just moved to another one: it has rolled back, and who asks again
# is sent there.
_LANE_HAS_MOVED = "cannot execute a distributed query from a query on a shard"
_NODE = re.compile(r"(?:remote node|to the node|command on|as essential:) (?:[^\s@]+@)?([^\s@]+:\d+)")


def meaning_of(sqlstate: str) -> Meaning:
    for length in range(len(sqlstate), 1, -1):
        if (found := _MEANINGS.get(sqlstate[:length])) is not None:
            return found
    return _UNKNOWN


def translated(error: Exception) -> Exception:
    """What this error means. What is not the database's stays what it is: a fault of ours."""
    if isinstance(error, MainspringError):
        return error
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error)
    if isinstance(error, (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)):  # TimeoutError is an OSError
        return unreachable(_words(error))
    return error


def unreachable(reason: str) -> DatabaseUnreachable:
    return DatabaseUnreachable(f"PostgreSQL cannot be reached: {reason}.", hint=_UNREACHABLE)


def node_unreachable(node: str, sqlstate: str, said: str) -> NodeUnreachable:
    error = NodeUnreachable(
        f"The node {node} of the database cluster cannot be reached: {said}.",
        hint=f"Start PostgreSQL on {node}; what is on the other nodes goes on meanwhile. See: mainspring doctor",
        sqlstate=sqlstate,
        said=said,
        node=node,
    )
    error.node = node
    return error


def _node_of(error: asyncpg.PostgresError, sqlstate: str) -> str | None:
    """Of which node a coordinator says that the connection to it failed or broke. Citus speaks English only."""
    words = f"{error} {getattr(error, 'context', None) or ''}"
    if not sqlstate.startswith(("08", "57P")) and "connection marked as essential" not in words:
        return None
    said = _NODE.search(words)
    return None if said is None else said[1]


def read_only_error() -> MainspringError:
    return _raised(_MEANINGS["25006"], "25006", "")


def said_by_server(sqlstate: str, words: str) -> MainspringError:
    """What a server said through whatever driver."""
    return _raised(meaning_of(sqlstate), sqlstate, words.strip().rstrip("."))


def _of_server(error: asyncpg.PostgresError) -> MainspringError:
    sqlstate = str(error.sqlstate or "")
    if _COMMIT_UNANSWERED in str(error):
        return OutcomeUnknown(
            f"A node of the database cluster did not answer COMMIT ({_words(error)}).",
            hint="Look whether the change is there before repeating it.",
        )
    if _LANE_HAS_MOVED in str(error):
        return _raised(_MOVED, sqlstate, _words(error))
    if (node := _node_of(error, sqlstate)) is not None:
        return node_unreachable(node, sqlstate, _words(error))
    if sqlstate == _CHECK_VIOLATION and error.table_name in _HISTORY and error.constraint_name is None:
        return PartitionMissing(
            f"History has no partition for what is to be written: {error}.",
            hint="Workers make it by themselves; or run: mainspring migrate",
            sqlstate=sqlstate,
        )
    return said_by_server(sqlstate, _words(error))


def _raised(meaning: Meaning, sqlstate: str, said: str) -> MainspringError:
    words = meaning.words.format(said)
    return meaning.kind(words, code=meaning.code, hint=meaning.hint, sqlstate=sqlstate, said=said)


def _words(error: BaseException) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__
