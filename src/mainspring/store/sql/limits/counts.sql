-- How many slots of some gates are held in one lane; and how many of these by runs that kept them while they waited, and
-- that wait for the same gate now.
-- Index: slot_gate_idx.
select slot.gate, count(*) as held,
       count(*) filter (where exists (
           select from held
           where held.lane = :lane::smallint and held.id = slot.run_id and held.gate is not distinct from slot.gate)) as kept
from slot
where slot.lane = :lane::smallint and slot.gate = any (:gates::text[])
group by slot.gate
