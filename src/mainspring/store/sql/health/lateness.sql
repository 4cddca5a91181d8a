-- How late the latest attempts of each job began, in seconds after they were due: a bounded sample.
-- Index: attempt_job_idx, in the partitions of the window; then attempt_run_idx, see lists/ended.
-- Jobs and lines are unnested beside their lane: see queues/depths.
with of_job as (
    select lane.lane, unnest(array(select id from job where tenant_id = :tenant::int)) as job_id from lane
), place as (
    select of_job.lane, of_job.job_id, unnest(array(select id from line where tenant_id = :tenant::int)) as line_id
    from of_job
)
select extract(epoch from attempt.started_at - attempt.due_at)::double precision as seconds
from place cross join lateral (
    select head.state, head.recorded_at, case when head.covers is null then head.fence end as fence,
           unnest(coalesce(head.covers, array[head.run_id])) as run_id
    from attempt as head
    where head.lane = place.lane and head.job_id = place.job_id and head.line_id = place.line_id
      and head.is_covered is not true
      and head.recorded_at > clock_now() - :window::double precision * interval '1 second'
    order by head.recorded_at desc limit :count::int) as named
join attempt on attempt.lane = place.lane and attempt.run_id = named.run_id and attempt.state = named.state
            and attempt.fence = coalesce(named.fence, attempt.fence) and attempt.recorded_at = named.recorded_at
            and attempt.recorded_at > clock_now() - :window::double precision * interval '1 second'
where attempt.started_at is not null
