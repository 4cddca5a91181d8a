-- The latest attempts in a window of time, newest first.
-- Index: attempt_job_idx, in the partitions of the window.
select job.name as job, attempt.run_id, attempt.attempt, attempt.outcome::text as outcome,
       attempt.state::text as state, attempt.started_at, attempt.finished_at, attempt.recorded_at, attempt.error,
       attempt.result
from job join attempt on attempt.job_id = job.id
where attempt.lane = any (:lanes::smallint[])
  and attempt.job_id = any (array(select id from job where tenant_id = :tenant::int))
  and attempt.line_id = any (array(select id from line where tenant_id = :tenant::int))   -- for the index
  and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
order by attempt.recorded_at desc limit :count::int
