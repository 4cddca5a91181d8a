-- Move runs that are due from `later` into the line, the most urgent first; within the batch they keep their order.
-- Moves: promote.  Hot.  Index: later_due_idx, then the primary key; ready_claim_idx, held_gate_idx.  See the function.
select line_id, priority, runs, due_at, gates
from promote_runs(:lane::smallint, :priorities::smallint[], :fronts::timestamptz[], :count::int)
