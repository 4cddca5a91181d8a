-- Who holds slots of a limit in one lane.
-- Index: slot_gate_idx.
select slot.gate, slot.run_id, slot.taken_at from slot
where slot.lane = :lane::smallint
  and (slot.gate = :number::text or slot.gate >= :number::text || ':' and slot.gate < :number::text || ';')
order by slot.gate limit :count::int
