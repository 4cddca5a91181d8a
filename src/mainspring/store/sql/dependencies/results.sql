-- What runs of one lane returned that succeeded: two arrays, since there may be ten thousand.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made.
select array_agg(attempt.run_id) as runs, array_agg(attempt.result) as results
from attempt
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.recorded_at >= :since::timestamptz
  and attempt.state = 'succeeded'
