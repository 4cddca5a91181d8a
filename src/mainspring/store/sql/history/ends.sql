-- How these runs of one lane ended, for those who wait for results; a dead letter counts as long as it is one.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made; dead primary key.
select distinct on (run_id) run_id, state, result, error, (select name from job where job.id = attempt.job_id) as job
from attempt
where lane = :lane::smallint and run_id = any (:runs::uuid[]) and recorded_at >= :since::timestamptz
  and tenant_id = :tenant::int
  and (state in ({ends})
       or state = 'dead' and exists (select from dead where dead.lane = :lane::smallint and dead.id = attempt.run_id))
order by run_id, recorded_at desc, fence desc
