-- How late the latest attempts of each job began, in seconds after they were due: a bounded sample.
-- Index: attempt_job_idx, in the partitions of the window.
-- Jobs and lines are unnested beside their lane: see queues/depths.
with of_job as (
    select lane.lane, unnest(array(select id from job where tenant_id = :tenant::int)) as job_id from lane
), place as (
    select of_job.lane, of_job.job_id, unnest(array(select id from line where tenant_id = :tenant::int)) as line_id
    from of_job
)
select extract(epoch from latest.started_at - latest.due_at)::double precision as seconds
from place cross join lateral (
    select attempt.started_at, attempt.due_at from attempt
    where attempt.lane = place.lane and attempt.job_id = place.job_id and attempt.line_id = place.line_id
      and attempt.recorded_at > clock_now() - :window::double precision * interval '1 second'
    order by attempt.recorded_at desc limit :count::int) as latest
where latest.started_at is not null
