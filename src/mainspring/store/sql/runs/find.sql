-- One run, wherever it lives, with what it carries. A run that has ended is not here but in history.
-- Index: primary keys; lease through `ids`, which is small, and only then the one lease's `runs`.
select 'scheduled'::run_state as state, id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes,
       revision, due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
       null::timestamptz as ready_at, null::timestamptz as claimed_at, null::uuid as worker_id,
       null::text as reason, false as is_cancelling, null::timestamptz as since, retry_until, overrides::text
from later where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'held', id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes,
       revision, due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
       null, null, null, reason, false, held_at, retry_until, overrides::text
from held where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'ready', id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes,
       revision, due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
       ready_at, null, null, null, false, ready_at, retry_until, overrides::text
from ready where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'dead', id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes,
       revision, due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
       null, null, null, null, false, died_at, retry_until, overrides::text
from dead where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'running', run.id, run.tenant_id, run.job_id, run.job_version, run.line_id, run.priority, run.attempt, run.fence,
       run.crashes, run.revision, run.due_at, run.expires_at, run.codec, run.payload, run.headers, run.tags,
       run.idempotency_key, run.submitted_by, run.submitted_at, run.ready_at, holder.claimed_at, holder.worker_id,
       null, get_bit(holder.cancel, run.ordinality::int - 1) = 1, holder.claimed_at, run.retry_until,
       run.overrides::text
from (
    select * from lease
    where lease.lane = :lane::smallint and lease.ids @> array[:run::uuid]
      and get_bit(lease.done, array_position(lease.ids, :run::uuid) - 1) = 0
    offset 0   -- keeps the planner from taking `runs` apart before it knows that this is the lease
) as holder
cross join lateral unnest(holder.runs) with ordinality as run
where run.id = :run::uuid and run.tenant_id = :tenant::int
