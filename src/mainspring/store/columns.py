"""The columns of runs, spelled once.

Statements name them in braces, and get them when they are loaded (see store/statements.py): `{run}` in
`insert into ready (lane, {run}) select lane, {run} from …`. A new attribute of runs is a field of `AttemptRecord`, if
history keeps it, or a name in `RUN`; a migration; and whoever uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.model.lifecycle import ENDS, State
from mainspring.model.run import PLAIN

if TYPE_CHECKING:
    from uuid import UUID

    from mainspring.store.instants import Micros


class AttemptRecord(NamedTuple):
    """One row of history, as COPY writes it: what a claimed run brings along as it is, then what the attempt adds."""

    due_at: Micros
    ready_at: Micros
    tenant_id: int
    job_id: int
    job_version: int
    priority: int
    codec: int
    headers: str | None
    tags: list[str] | None
    idempotency_key: str | None
    submitted_by: str | None
    submitted_at: Micros

    lane: int
    run_id: UUID
    fence: int
    attempt: int
    line_id: int
    outcome: str
    state: str
    claimed_at: Micros
    started_at: Micros | None
    finished_at: Micros
    worker_id: UUID
    error: str | None
    result: bytes | None
    payload: bytes | None


BROUGHT = AttemptRecord._fields.index("lane")  # so many columns a claimed run brings along
_BROUGHT = AttemptRecord._fields[:BROUGHT]

# What a run carries wherever it goes: in every place, in its lease, in history.
CARRIED = ("line_id", "payload", *(name for name in _BROUGHT if name not in ("due_at", "ready_at")))
# The row of a run where it waits, beside its lane; each place adds a few columns of its own.
RUN = (
    "id",
    *CARRIED,
    "attempt",
    "fence",
    "crashes",
    "revision",
    "due_at",
    "expires_at",
    "retry_until",
    "first_started_at",
    "overrides",
)
# What a worker gets of a run that it claims. The row is read once per run, and names would cost a look-up each.
CLAIMED = (*_BROUGHT, "id", "rank", "attempt", "fence", "expires_at", "payload", "special")
TENANT, JOB, JOB_VERSION, PRIORITY, CODEC, HEADERS = (
    CLAIMED.index(name) for name in ("tenant_id", "job_id", "job_version", "priority", "codec", "headers")
)
DUE_AT, SUBMITTED_AT = (CLAIMED.index(name) for name in ("due_at", "submitted_at"))
ID, RANK, ATTEMPT, FENCE, EXPIRES_AT, PAYLOAD, SPECIAL = range(BROUGHT, len(CLAIMED))
# What history keeps of a run, beside its id, in the row that is its end.
RECORDED = ("fence", "due_at", *CARRIED)
# What a list shows of a run, beside its id.
LISTED = (
    "job_id",
    "job_version",
    "line_id",
    "priority",
    "attempt",
    "fence",
    "due_at",
    "submitted_at",
    "submitted_by",
    "tags",
)
# What COPY writes for a plain run: see `NewRun.is_plain`.
COPIED = ("lane", "id", *PLAIN)

# What a schedule is: what an edit replaces, and what a version keeps.
CONTENT = (
    "job_id",
    "spec",
    "codec",
    "payload",
    "options",
    "tags",
    "catch_up",
    "catch_up_seconds",
    "is_declared",
    "calendars",
    "read_at",
    "overlap",
    "pause_after_failures",
)
SCHEDULE = ("id", "tenant_id", "name", "version", *CONTENT)
# How a schedule stands: its state, and who touched it last.
STANDING = (
    "state",
    "paused_at",
    "paused_by",
    "pause_reason",
    "paused_until",
    "created_at",
    "created_by",
    "changed_at",
    "changed_by",
)

# Not columns, but spelled once as well: the states of runs that ended.
_ENDS = tuple(f"'{state}'" for state in State if state in ENDS)

# A stored calendar, as people see it.
CALENDAR = ("name", "version", "revision", "document", "created_at", "created_by", "changed_at", "changed_by")

FRAGMENTS: dict[str, tuple[str, ...]] = {
    "attempt": AttemptRecord._fields,
    "calendar": CALENDAR,
    "claimed": CLAIMED,
    "content": CONTENT,
    "ends": _ENDS,
    "listed": LISTED,
    "recorded": RECORDED,
    "run": RUN,
    "schedule": SCHEDULE,
    "standing": STANDING,
}
