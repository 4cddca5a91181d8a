-- The runs of one lane whose turn it is at some gates, so many at each.
-- Index: held_gate_idx.
select wanted.gate, run.id, run.turn
from unnest(:gates::text[], :counts::int[]) as wanted (gate, count) cross join lateral (
    select held.id, held.turn from held
    where held.lane = :lane::smallint and held.gate = wanted.gate and held.due_at <= clock_now()
    order by held.gate, held.turn limit wanted.count) as run
