-- The latest attempts in a window of time, newest first.
-- Index: attempt_job_idx, in the partitions of the window; then attempt_run_idx, see lists/ended.
select job.name as job, attempt.run_id, attempt.attempt, attempt.outcome::text as outcome,
       attempt.state::text as state, attempt.started_at, attempt.finished_at, attempt.recorded_at, attempt.error,
       attempt.result
from (
    select head.lane, head.state, head.recorded_at, case when head.covers is null then head.fence end as fence,
           unnest(coalesce(head.covers, array[head.run_id])) as run_id
    from attempt as head
    where head.lane = any (:lanes::smallint[]) and head.is_covered is not true
      and head.job_id = any (array(select id from job where tenant_id = :tenant::int))
      and head.line_id = any (array(select id from line where tenant_id = :tenant::int))   -- for the index
      and head.recorded_at > :after::timestamptz and head.recorded_at <= :until::timestamptz
    order by head.recorded_at desc limit :count::int) as named
join attempt on attempt.lane = named.lane and attempt.run_id = named.run_id and attempt.state = named.state
            and attempt.fence = coalesce(named.fence, attempt.fence) and attempt.recorded_at = named.recorded_at
            and attempt.recorded_at > :after::timestamptz and attempt.recorded_at <= :until::timestamptz
join job on job.id = attempt.job_id
order by attempt.recorded_at desc
