-- Send settled runs back to wait for their next attempt, each after its own delay and not before its own instant.
-- Moves: retry, snooze.  Index: lease primary key.
insert into later (lane, {run except attempt, due_at, expires_at, first_started_at},
                   attempt, due_at, expires_at, first_started_at, gates)
select lease.lane, {run of run except attempt, due_at, expires_at, first_started_at},
       run.attempt + back.spent, greatest(back.not_before, clock_now() + back.delay * interval '1 second'),
       run.retry_until, coalesce(run.first_started_at, back.started_at),
       case when back.has_gates then
       (select string_agg(slot.gate, E'\n' order by slot.place) from slot
        where slot.lane = :lane::smallint and slot.run_id = run.id) end   -- before its slots are given back
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :delays::double precision[],
            :starts::timestamptz[], :spent::smallint[],
            :not_before::timestamptz[], :have_gates::boolean[])
    as back (lease, position, delay, started_at, spent, not_before, has_gates)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
