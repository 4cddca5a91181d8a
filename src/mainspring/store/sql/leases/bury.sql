-- Put settled runs that are out of attempts among the dead letters.
-- Moves: bury.  Index: lease primary key.
insert into dead (lane, id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision,
                  due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
                  retry_until, first_started_at, overrides)
select lease.lane, run.id, run.tenant_id, run.job_id, run.job_version, run.line_id, run.priority,
       run.attempt + back.spent, run.fence, run.crashes, run.revision, run.due_at, run.expires_at,
       run.codec, run.payload, run.headers, run.tags, run.idempotency_key, run.submitted_by, run.submitted_at,
       run.retry_until, coalesce(run.first_started_at, back.started_at), run.overrides
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :starts::timestamptz[],
            :spent::smallint[]) as back (lease, position, started_at, spent)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
