-- Put runs that were held for want of a handler back in line, because workers know their jobs by now. Each job and line
-- comes with the seconds that its runs stay held at least.
-- Moves: release.  Index: held_job_idx.  See the function.
select line_id, priority, runs
from release_runs(:lane::smallint, :jobs::int[], :lines::int[], :pauses::double precision[], :reason::text, :count::int)
