-- The runs of one lane whose turn it is at some gates, so many of those with turns from one to another. Those of paused queues
-- are passed over, but where order is strict.
-- Index: held_gate_idx.
select wanted.gate, run.id, run.turn, run.line_id
from unnest(:gates::text[], :turns_from::bigint[], :turns_before::bigint[], :counts::int[], :strict::boolean[])
    as wanted (gate, start, before, count, is_strict)
cross join lateral (
    select held.id, held.turn, held.line_id from held
    where held.lane = :lane::smallint and held.gate = wanted.gate and held.turn >= wanted.start and held.turn < wanted.before
      and held.due_at <= clock_now() and (wanted.is_strict or held.line_id <> all (:paused::int[]))
    order by held.gate, held.turn limit wanted.count) as run
