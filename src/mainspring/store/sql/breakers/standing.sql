-- Who is being tried at some gates of breakers in one lane, and how many wait, counted up to a bound.
-- Index: slot_gate_idx, held_gate_idx.
select wanted.gate,
       (select slot.run_id from slot where slot.lane = :lane::smallint and slot.gate = wanted.gate limit 1) as probe,
       (select count(*) from (
            select from held where held.lane = :lane::smallint and held.gate = wanted.gate limit :bound::int) as few)
       as waiting
from unnest(:gates::text[]) as wanted (gate)
