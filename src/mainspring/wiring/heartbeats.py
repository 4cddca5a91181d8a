"""The connection over which heartbeats travel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.store.link import Link

if TYPE_CHECKING:
    from mainspring.clock import Clock
    from mainspring.store.database import Database
    from mainspring.worker.settings import WorkerSettings


def heartbeat_link(database: Database, clock: Clock, settings: WorkerSettings) -> Link:
    """A database that is back must hear from us well before anyone may wonder whether we live; and a heartbeat that is
    lost with a server is followed by another: it waits for no standby.
    """
    return Link(
        database,
        clock,
        "supervisor",
        longest_pause=settings.heartbeat_every,
        settings={"synchronous_commit": "off"},
    )
