-- Send settled runs back to wait for their next attempt, each after its own delay and not before its own instant.
-- Moves: retry, snooze.  Index: lease primary key.
insert into later (lane, id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision,
                   due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
                   retry_until, first_started_at, overrides)
select lease.lane, run.id, run.tenant_id, run.job_id, run.job_version, run.line_id, run.priority,
       run.attempt + back.spent, run.fence, run.crashes, run.revision,
       greatest(back.not_before, clock_now() + back.delay * interval '1 second'), run.retry_until,
       run.codec, run.payload, run.headers, run.tags, run.idempotency_key, run.submitted_by, run.submitted_at,
       run.retry_until, coalesce(run.first_started_at, back.started_at), run.overrides
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :delays::double precision[],
            :starts::timestamptz[], :spent::smallint[],
            :not_before::timestamptz[]) as back (lease, position, delay, started_at, spent, not_before)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
