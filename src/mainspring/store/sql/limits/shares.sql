-- How many slots each gate of a limit has given out in one lane.
-- Index: slot_gate_idx.
select slot.gate, count(*) as held from slot
where slot.lane = :lane::smallint and slot.gate >= :number::text || ':' and slot.gate < :number::text || ';'
  and not exists (   -- kept while it waits for another attempt, and waited for now
      select from held
      where held.lane = :lane::smallint and held.id = slot.run_id and held.gate is not distinct from slot.gate)
group by slot.gate
