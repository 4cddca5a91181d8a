-- Set settled runs aside whose handlers have returned, until their children have ended, with what they returned. They do not
-- expire: nothing is left to be started.
-- Moves: await_children.  Index: lease primary key.
insert into held (lane, {run except attempt, expires_at, first_started_at}, attempt, first_started_at, reason, result)
select lease.lane, {run of run except attempt, expires_at, first_started_at}, run.attempt + back.spent,
       coalesce(run.first_started_at, back.started_at), 'children', back.result
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :starts::timestamptz[], :spent::smallint[], :results::bytea[])
    as back (lease, position, started_at, spent, result)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
