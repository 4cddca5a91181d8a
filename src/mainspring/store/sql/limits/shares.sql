-- How many slots each gate of a limit has given out in one lane; and how many of these are held by runs that kept them while
-- they waited for another attempt, and that wait at the gate now.
-- Index: slot_gate_idx.
select slot.gate, count(*) as held,
       count(*) filter (where exists (
           select from held
           where held.lane = :lane::smallint and held.id = slot.run_id and held.gate is not distinct from slot.gate)) as kept
from slot
where slot.lane = :lane::smallint and slot.gate >= :number::text || ':' and slot.gate < :number::text || ';'
group by slot.gate
