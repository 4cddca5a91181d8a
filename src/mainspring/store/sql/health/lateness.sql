-- How late the latest attempts of each job began, in seconds after they were due: a bounded sample.
-- Index: attempt_job_idx, in the partitions of the window.
select extract(epoch from latest.started_at - latest.due_at)::double precision as seconds
from lane cross join job cross join line
cross join lateral (
    select attempt.started_at, attempt.due_at from attempt
    where attempt.lane = lane.lane and attempt.job_id = job.id and attempt.line_id = line.id
      and attempt.recorded_at > clock_now() - :window::double precision * interval '1 second'
    order by attempt.recorded_at desc limit :count::int) as latest
where latest.started_at is not null
