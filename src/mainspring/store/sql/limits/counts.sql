-- How many slots of some gates are held in one lane, but for those that runs kept while they waited, and that they wait for
-- now.
-- Index: slot_gate_idx.
select slot.gate, count(*) as held
from slot
where slot.lane = :lane::smallint and slot.gate = any (:gates::text[])
  and not exists (
      select from held
      where held.lane = :lane::smallint and held.id = slot.run_id and held.gate is not distinct from slot.gate)
group by slot.gate
