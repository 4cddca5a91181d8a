-- Forget some workers that ended long ago, but for those that still have leases, which are to be rescued first, or a tally,
-- which is to become part of the sum.
-- The workers are read as a whole: they are few, and it happens once an hour.
delete from worker
where id = any (array(
    select worker.id from worker
    where worker.ended_at < clock_now() - :older_than::interval and worker.id <> all (:kept::uuid[])
    limit :count::int))
returning id
