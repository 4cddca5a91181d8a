-- What happened to one run so far, oldest first.
-- Index: attempt_run_idx, in the partitions since the run was made.
select fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome, state, due_at, ready_at, claimed_at,
       started_at, finished_at, recorded_at, worker_id, error, result, codec, payload, headers, tags, idempotency_key,
       submitted_by, submitted_at
from attempt
where lane = :lane::smallint and run_id = :run::uuid and recorded_at >= :since::timestamptz
  and tenant_id = :tenant::int
order by recorded_at, fence
