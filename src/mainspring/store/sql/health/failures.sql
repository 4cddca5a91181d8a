-- The latest attempts that came to nothing, newest first.
-- Index: attempt_failure_idx, in the partitions of the window.
-- Jobs and lines are unnested beside their lane: see queues/depths.
with of_job as (
    select lane.lane, unnest(array(select id from job where tenant_id = :tenant::int)) as job_id from lane
), place as (
    select of_job.lane, of_job.job_id, unnest(array(select id from line where tenant_id = :tenant::int)) as line_id
    from of_job
)
select latest.run_id, job.name as job, latest.outcome, latest.state, latest.recorded_at, latest.error
from place cross join lateral (
    select attempt.run_id, attempt.outcome::text as outcome, attempt.state::text as state, attempt.recorded_at,
           attempt.error
    from attempt
    where attempt.lane = place.lane and attempt.job_id = place.job_id and attempt.line_id = place.line_id
      and attempt.outcome <> 'succeeded'
      and attempt.recorded_at > clock_now() - :window::double precision * interval '1 second'
    order by attempt.recorded_at desc limit :count::int) as latest
join job on job.id = place.job_id
order by latest.recorded_at desc limit :count::int
