-- Set settled runs aside until their reason is gone. No attempt is spent.
-- Moves: hold.  Index: lease primary key.
insert into held (lane, {run}, reason)
select lease.lane, {run of run}, :reason::text
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[]) as back (lease, position)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
