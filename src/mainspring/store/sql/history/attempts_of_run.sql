-- What happened to one run so far, oldest first.
-- Index: attempt_run_idx, in the partitions since the run was made.
select {attempt except lane, run_id}, recorded_at
from attempt
where lane = :lane::smallint and run_id = :run::uuid and recorded_at >= :since::timestamptz
  and tenant_id = :tenant::int
order by recorded_at, fence
