-- Put settled runs that are out of attempts among the dead letters.
-- Moves: bury.  Index: lease primary key.
insert into dead (lane, {run except attempt, first_started_at}, attempt, first_started_at)
select lease.lane, {run of run except attempt, first_started_at},
       run.attempt + back.spent, coalesce(run.first_started_at, back.started_at)
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :starts::timestamptz[],
            :spent::smallint[]) as back (lease, position, started_at, spent)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
