"""Answers that rest on what was found rather than written.

With synchronous replication a row can be visible that no standby has yet: its COMMIT still waits, or its wait was cut
short. Whoever answers from it loses it at the next failover. So first something is written, after what was found, and
its COMMIT is waited for: then the standby has both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import DatabaseUnreachable, OutcomeUnknown
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.store.connection import Connection


REGISTRATIONS_LANE = 0  # what is shared lives everywhere; its audit rows live in this lane


async def confirm_at_commit(connection: Connection, lane: int) -> None:
    """Let the COMMIT of the open transaction wait for the standby, though nothing else is written in it."""
    await load("runs/confirm").fetch(connection, lane=lane)


async def confirm(connection: Connection, lanes: Iterable[int]) -> None:
    """Return when the standby has all that this connection has seen in these lanes; at once where there is none."""
    try:
        for lane in sorted(set(lanes)):
            await confirm_at_commit(connection, lane)
    except DatabaseUnreachable as error:
        raise OutcomeUnknown(
            f"What was found could not be confirmed by the standby ({error.message}).",
            hint="Look again when the database is well.",
        ) from error
