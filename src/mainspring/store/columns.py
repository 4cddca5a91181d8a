"""The columns of runs, spelled once.

Statements name them in braces and get them when they are loaded (see store/statements.py): `{run}` in
`insert into ready (lane, {run}) select lane, {run} from …`. A new attribute of runs is a name here, a migration, and
whoever uses it.
"""

from __future__ import annotations

# What a run carries wherever it goes: in every place, in its lease, in history.
CARRIED = (
    "tenant_id",
    "job_id",
    "job_version",
    "line_id",
    "priority",
    "codec",
    "payload",
    "headers",
    "tags",
    "idempotency_key",
    "submitted_by",
    "submitted_at",
)
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
# What history keeps of a run, beside its id, in the row that is its end.
RECORDED = ("fence", "due_at", *CARRIED)
# What a worker gets of a run that it claims.
CLAIMED = (
    "id",
    "tenant_id",
    "job_id",
    "job_version",
    "priority",
    "rank",
    "attempt",
    "fence",
    "due_at",
    "ready_at",
    "expires_at",
    "codec",
    "payload",
    "headers",
    "tags",
    "idempotency_key",
    "submitted_by",
    "submitted_at",
    "special",
)
# A row of history, but for what the database adds.
ATTEMPT = (
    "lane",
    "run_id",
    *RECORDED,
    "attempt",
    "outcome",
    "state",
    "ready_at",
    "claimed_at",
    "started_at",
    "finished_at",
    "worker_id",
    "error",
    "result",
)
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

FRAGMENTS: dict[str, tuple[str, ...]] = {
    "attempt": ATTEMPT,
    "claimed": CLAIMED,
    "listed": LISTED,
    "recorded": RECORDED,
    "run": RUN,
}
