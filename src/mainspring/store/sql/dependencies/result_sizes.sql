-- How large what runs of one lane returned is, of those that succeeded: two arrays, since there may be ten thousand.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made.
select array_agg(attempt.run_id) as runs, array_agg(coalesce(octet_length(attempt.result), 4)) as sizes
from attempt
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.recorded_at >= :since::timestamptz
  and attempt.state = 'succeeded'
