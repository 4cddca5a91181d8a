-- Lock the leases that have some runs of one lane, in the order in which everybody locks several: no waiting in a circle.
-- Answers which of their runs are not done.
-- Index: lease (lane), through `ids`, which is small.
select lease.ids, lease.done::text as done from lease
where lease.lane = :lane::smallint and lease.ids && :runs::uuid[]
order by lease.id for update
