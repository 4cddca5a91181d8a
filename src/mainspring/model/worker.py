"""Workers as people see them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class WorkerState(StrEnum):
    LIVE = "live"
    STOPPED = "stopped"  # it said good-bye
    LOST = "lost"  # its heartbeats stopped, or its supervisor saw it exit


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSummary:
    """One worker process, in one incarnation."""

    id: UUID
    state: WorkerState
    host: str
    pid: int
    queues: list[str]
    labels: list[str]
    slots: int
    version: str
    unsettled: int  # results that the database has not accepted yet
    unsettled_since: datetime | None  # since when it cannot settle any
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None
    silent_seconds: float  # since its last heartbeat


class Server(NamedTuple):
    """What a live worker serves, and the names of the jobs it knows."""

    queues: frozenset[str]
    labels: frozenset[str]
    handlers: frozenset[str]
