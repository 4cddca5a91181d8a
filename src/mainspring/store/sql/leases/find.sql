-- The runs of one lease, as its claim returned them: for a claim whose answer was lost.
-- Index: lease primary key.
select run.id, run.tenant_id, run.job_id, run.job_version, run.priority, 0::bigint as rank, run.attempt, run.fence,
       run.due_at, run.ready_at, run.expires_at, run.codec, run.payload, run.headers, run.tags, run.idempotency_key,
       run.submitted_by, run.submitted_at,
       special_of(run.crashes, run.first_started_at, run.overrides) as special
from lease cross join lateral unnest(lease.runs) as run
where lease.lane = :lane::smallint and lease.id = :lease::uuid and lease.worker_id = :worker::uuid
