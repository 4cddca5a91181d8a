-- Claim ready runs of one lane and line for one worker, in the order of the given priorities.
-- Moves: claim.  Hot.  Index: ready_claim_idx, then the primary key.  See the function.
select {claimed}
from claim_runs(:lane::smallint, :line::int, :priorities::smallint[], :fronts::bigint[], :count::int, :lease::uuid,
                :worker::uuid, :jobs_in_threads::int[], :threads::int)
