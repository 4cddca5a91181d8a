-- What made dead letters of some runs of one lane.
-- Index: attempt_run_idx, in the partitions since the first of them died.
select distinct on (run_id) run_id, error from attempt
where lane = :lane::smallint and run_id = any (:runs::uuid[]) and recorded_at >= :since::timestamptz and state = 'dead'
  and tenant_id = :tenant::int
order by run_id, recorded_at desc, fence desc
