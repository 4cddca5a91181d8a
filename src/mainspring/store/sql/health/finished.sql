-- Attempts recorded in a window of time, counted by job and outcome.
-- Index: attempt_job_idx, in the partitions of the window.
select job.name as job, finished.outcome, finished.count
from job cross join lateral (
    select attempt.outcome::text as outcome, count(*) as count from attempt
    where attempt.lane = any (:lanes::smallint[]) and attempt.job_id = job.id
      and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
    group by attempt.outcome) as finished
