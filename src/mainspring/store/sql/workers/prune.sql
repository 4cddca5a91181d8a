-- Forget some workers that ended long ago. One that still has leases stays until they are rescued, and one with a tally
-- until that is part of the sum.
-- Index: tally primary key. The workers are read as a whole: they are few, and it happens once an hour.
delete from worker
where id = any (array(
    select worker.id from worker
    where worker.ended_at < clock_now() - :older_than::interval and worker.id <> all (:holding::uuid[])
      and not exists (select from tally where tally.worker_id = worker.id)
    limit :count::int))
returning id
