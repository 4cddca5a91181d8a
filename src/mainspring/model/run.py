"""Runs as values: what is submitted, what is claimed, what people see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.model.line import Delivery

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.backlog import BacklogNotice
    from mainspring.model.dependency import Parent
    from mainspring.model.fan_out import ChildStatus
    from mainspring.model.lifecycle import Outcome, State
    from mainspring.model.report import Progress
    from mainspring.model.unique import Wish

MOST_URGENT, LEAST_URGENT, DEFAULT_PRIORITY = 0, 9, 5
PRIORITIES = tuple(range(MOST_URGENT, LEAST_URGENT + 1))


class NewRun(NamedTuple):
    """One run to be accepted. A tuple, because batches of them are the hot path of submission."""

    tenant_id: int
    job_id: int
    job_version: int
    line_id: int
    priority: int
    payload: bytes
    codec: int = 0
    headers: str | None = None
    tags: list[str] | None = None
    submitted_by: str | None = None
    at: datetime | None = None
    delay: float | None = None  # seconds from the database's now
    max_age: float | None = None  # seconds from when it is due
    key: str | None = None
    digest: bytes | None = None
    start_within: float | None = None  # seconds from when it is due; then it expires unless it has started
    overrides: str | None = None  # of its job's policies, as JSON
    gates: str | None = None  # at which it waits before it may start, one per line
    after: tuple[Parent, ...] | None = None  # which runs have to end before
    wish: Wish | None = None  # for a unique key
    backlog: str | None = None  # the gates of caps under which it waits, one per line

    @property
    def is_plain(self) -> bool:
        """Whether it may start at once and carries nothing that the database has to compute or compare.

        Under which caps it waits is written beside it.
        """
        return self[_PLAIN:_BACKLOG] == _NOTHING_MORE


class Accepted(NamedTuple):
    """The run that stands for a submission."""

    id: UUID
    is_new: bool = True  # False: it was there before
    backlog: BacklogNotice | None = None  # of those it waits in, the one nearest to its cap, if one is near


class AcceptedBatch(NamedTuple):
    """The runs that stand for the items of a batch, in their order."""

    ids: list[UUID]
    earlier: Collection[int] = ()  # the places of those that were there before
    backlogs: Sequence[BacklogNotice | None] = ()  # as each is told; empty: none is near its cap

    def each(self) -> Iterator[Accepted]:
        for place, run_id in enumerate(self.ids):
            yield Accepted(run_id, place not in self.earlier, self.backlogs[place] if self.backlogs else None)

    def single(self) -> Accepted:
        """Of a batch of one."""
        return next(self.each())


PLAIN = NewRun._fields[: NewRun._fields.index("at")]  # what every run has
_PLAIN = len(PLAIN)
_BACKLOG = NewRun._fields.index("backlog")
_NOTHING_MORE = (None,) * (_BACKLOG - _PLAIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a run, or the row that records an end without one (number 0)."""

    number: int
    fence: int
    outcome: Outcome
    state: State
    ready_at: datetime | None
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    recorded_at: datetime
    worker_id: UUID | None
    error: dict[str, Any] | None
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A run entered a state, or someone acted on it."""

    at: datetime
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as people see it, wherever it is."""

    id: UUID
    job: str
    job_version: int
    queue: str
    state: State
    priority: int
    attempts_spent: int
    fence: int
    revision: int
    payload: Any
    tags: list[str]
    due_at: datetime
    submitted_at: datetime
    submitted_by: str | None = None
    idempotency_key: str | None = None
    unique_key: str | None = None  # as people read it: customer=acme
    expires_at: datetime | None = None  # unless it starts, or starts again, before
    retry_until: datetime | None = None  # by its maximum age
    overrides: dict[str, Any] = field(default_factory=dict)  # its own policies, instead of its job's
    held_for: str | None = None
    is_cancelling: bool = False
    worker_id: UUID | None = None
    labels: list[str] = field(default_factory=list)  # what a worker must have to start it
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    lacks: str | None = None  # why no worker will start it, if none will
    rerun_of: UUID | None = None
    triggered_by: UUID | None = None  # after which run of another job it was submitted, if that is why
    child_of: UUID | None = None
    children: Sequence[ChildStatus] = ()
    progress: Progress | None = None
    headers: dict[str, str] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    transitions: list[Transition] = field(default_factory=list)
