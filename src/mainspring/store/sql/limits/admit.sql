-- Let runs of one lane pass the gates at which they wait: in line, or to their next gate.
-- Moves: release.  See the function.
select run_id, line_id, priority, next_gate
from admit_runs(:lane::smallint, :runs::uuid[], :gates::text[], :is_known::boolean[], :takes_slot::boolean[],
                :strict::boolean[], :halting::boolean[], :released_at::double precision)
