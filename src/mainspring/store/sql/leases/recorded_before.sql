-- Which of these attempts are in history already, by this worker, and as what: their completion was accepted before.
-- Index: attempt_run_idx, in the partitions since the oldest of their runs was made.
select attempt.run_id, attempt.fence, attempt.outcome from attempt
join unnest(:runs::uuid[], :fences::int[]) as sent (run_id, fence)
    on attempt.run_id = sent.run_id and attempt.fence = sent.fence
where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[]) and attempt.worker_id = :worker::uuid
  and attempt.recorded_at >= to_timestamp(:since_epoch::double precision)
  and attempt.finished_at is not null   -- what a rescuer recorded has none: it does not know
