"""What a pooler between us and PostgreSQL does with sessions.

In session mode a client keeps its server connection, and may set it up as it likes. In transaction mode each
transaction may get another one: then it brings its own settings, and nothing is prepared, listened to or left behind.
"""

from __future__ import annotations

import contextlib
import secrets
from typing import TYPE_CHECKING

from mainspring.store.connection import patience
from mainspring.store.failures import DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.store.connection import Connection

PROBES = 3
PROBE_SECONDS = 3.0
# What belongs to a session, and is not a transaction's to set.
OF_SESSIONS = frozenset(
    {
        "citus.override_table_visibility",
        "idle_session_timeout",
        "tcp_keepalives_count",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_user_timeout",
    }
)


def for_session(settings: Mapping[str, str]) -> str:
    return "".join(f"set {name} = '{value}';" for name, value in settings.items())


def for_transaction(settings: Mapping[str, str]) -> str:
    return "".join(f"set local {name} = '{value}';" for name, value in settings.items() if name not in OF_SESSIONS)


async def keeps_sessions(one: Connection, other: Connection) -> bool:
    """Whether what a client sets is still there after another client had the chance to get its server connection."""
    with patience(one, PROBE_SECONDS), patience(other, PROBE_SECONDS), contextlib.suppress(*DATABASE_ERRORS):
        return all([await _is_kept(one, other) for _ in range(PROBES)])
    return False


async def _is_kept(one: Connection, other: Connection) -> bool:
    token = secrets.token_hex(8)
    await one.execute(f"set mainspring.probe = '{token}'")
    await other.execute("begin")
    await one.execute("begin")
    kept = await one.fetchval("select current_setting('mainspring.probe', true)")
    await one.execute("rollback")
    await other.execute("rollback")
    return bool(kept == token)
