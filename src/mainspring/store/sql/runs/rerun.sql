-- Run runs of one lane that ended once more, each as a new run.
-- Moves: submit.  Index: attempt_run_idx, in the partitions since the oldest of them was made.  See the function.
select run_id, id, line_id, priority
from rerun_runs(:lane::smallint, :runs::uuid[], :ids::uuid[], :since::timestamptz, :tenant::int, :codec::smallint,
                :payload::bytea, :actor::text, :detail::jsonb)
