-- Attempts recorded in a window of time, counted by job and outcome.
-- Index: attempt_job_idx, in the partitions of the window. A row may stand for others of its job and outcome.
select job.name as job, attempt.outcome::text as outcome, sum(coalesce(cardinality(attempt.covers), 1))::bigint as count
from job join attempt on attempt.job_id = job.id
where attempt.lane = any (:lanes::smallint[]) and attempt.is_covered is not true
  and attempt.job_id = any (array(select id from job where tenant_id = :tenant::int))
  and attempt.line_id = any (array(select id from line where tenant_id = :tenant::int))   -- for the index
  and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
group by job.name, attempt.outcome
