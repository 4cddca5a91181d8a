-- Decide the next instants of some schedules of one lane; answers with the lines that got runs.
-- Moves: submit, cancel.  Hot.  See the function.  Index: schedule_run_schedule_idx, held_gate_idx, ready_claim_idx.
select line_id, priority, runs_fired
from fire_schedules(:lane::int, :schedules::uuid[], :revisions::int[], :expected::timestamptz[], :fired::timestamptz[],
                    :due::timestamptz[], :previous::timestamptz[], :runs::uuid[], :chosen::int[],
                    :following::timestamptz[], :following_due::timestamptz[], :templates::jsonb, :skips::jsonb,
                    :tzdata::text)
