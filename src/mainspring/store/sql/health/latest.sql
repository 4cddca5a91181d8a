-- The latest attempts in a window of time, newest first.
-- Index: attempt_job_idx, in the partitions of the window.
select job.name as job, latest.*
from job cross join lateral (
    select run_id, attempt, outcome::text as outcome, state::text as state, started_at, finished_at, recorded_at,
           error, result
    from attempt
    where attempt.lane = any (:lanes::smallint[]) and attempt.job_id = job.id
      and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
    order by attempt.recorded_at desc limit :count::int) as latest
order by latest.recorded_at desc limit :count::int
