-- What became of runs of one lane that others wait for; a dead letter counts as long as it is one.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made; dead primary key.
select distinct on (attempt.run_id) attempt.run_id, attempt.state
from attempt
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.recorded_at >= :since::timestamptz
  and (attempt.state in ({ends})
       or attempt.state = 'dead' and exists (
           select from dead where dead.lane = :lane::smallint and dead.id = attempt.run_id))
order by attempt.run_id, attempt.recorded_at desc, attempt.fence desc
