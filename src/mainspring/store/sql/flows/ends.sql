-- Why runs of one lane were cancelled.
-- Index: attempt_run_idx, in the partitions since the oldest of them was made.
select attempt.run_id, attempt.error ->> 'code' as code, (attempt.error ->> 'parent')::uuid as parent
from attempt
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.recorded_at >= :since::timestamptz
  and attempt.tenant_id = :tenant::int and attempt.state = 'cancelled'
