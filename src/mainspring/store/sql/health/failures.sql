-- The latest attempts that came to nothing, newest first.
-- Index: attempt_failure_idx, in the partitions of the window.
select latest.run_id, job.name as job, latest.outcome, latest.state, latest.recorded_at, latest.error
from lane cross join job cross join line
cross join lateral (
    select attempt.run_id, attempt.outcome::text as outcome, attempt.state::text as state, attempt.recorded_at,
           attempt.error
    from attempt
    where attempt.lane = lane.lane and attempt.job_id = job.id and attempt.line_id = line.id
      and attempt.outcome <> 'succeeded'
      and attempt.recorded_at > clock_now() - :window::double precision * interval '1 second'
    order by attempt.recorded_at desc limit :count::int) as latest
order by latest.recorded_at desc limit :count::int
