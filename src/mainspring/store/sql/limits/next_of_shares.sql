-- The runs of one lane whose turn it is at some gates that share a limit, so many at each, but for those of some lines. No
-- more than so many are looked at: all that wait there may be of lines that have no room.
-- Index: held_gate_idx.
select wanted.gate, run.id, run.turn, run.line_id
from unnest(:gates::text[]) as wanted (gate) cross join lateral (
    select first.id, first.turn, first.line_id
    from (select held.id, held.turn, held.line_id from held
          where held.lane = :lane::smallint and held.gate = wanted.gate and held.due_at <= clock_now()
          order by held.gate, held.turn limit :looked_at::int) as first
    where first.line_id <> all (:without::int[])
    order by first.turn limit :count::int) as run
