-- Put settled runs back in line at once, at the rank they had time to earn: the front. No attempt is spent.
-- Moves: give_back.  Index: lease primary key.
insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, attempt, fence, crashes, revision,
                   due_at, expires_at, codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at,
                   retry_until, first_started_at, overrides, rank)
select lease.lane, run.id, run.tenant_id, run.job_id, run.job_version, run.line_id, run.priority, run.attempt,
       run.fence, run.crashes, run.revision, run.due_at,
       case when back.started_at is null then run.expires_at else run.retry_until end,
       run.codec, run.payload, run.headers, run.tags, run.idempotency_key, run.submitted_by, run.submitted_at,
       run.retry_until, coalesce(run.first_started_at, back.started_at), run.overrides,
       (date_part('epoch', run.ready_at) * 1000000)::bigint
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :starts::timestamptz[]) as back (lease, position, started_at)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
