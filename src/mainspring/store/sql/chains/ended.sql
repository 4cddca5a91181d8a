-- What runs of one lane that have ended brought along and returned.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made.
select attempt.run_id, attempt.fence, attempt.state, attempt.headers::text as headers,
       case when :with_results::boolean then attempt.result end as result
from attempt
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.recorded_at >= :since::timestamptz
