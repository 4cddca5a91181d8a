-- Attempts recorded in a window of time, counted by job and outcome.
-- Index: attempt_job_idx, in the partitions of the window.
select job.name as job, attempt.outcome::text as outcome, count(*) as count
from job join attempt on attempt.job_id = job.id
where attempt.lane = any (:lanes::smallint[])
  and attempt.job_id = any (array(select id from job where tenant_id = :tenant::int))
  and attempt.line_id = any (array(select id from line where tenant_id = :tenant::int))   -- for the index
  and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
group by job.name, attempt.outcome
