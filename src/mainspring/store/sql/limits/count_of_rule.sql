-- How many slots of a limit are held, and how many runs wait for one, in one lane: counted up to a bound. A gate of a limit
-- begins with its number.
-- Index: slot_gate_idx, held_gate_idx.
select (select count(*) from (
            select from slot where slot.lane = :lane::smallint
              and (slot.gate = :number::text or slot.gate >= :number::text || ':' and slot.gate < :number::text || ';')
            limit :bound::int) as few) as holding,
       (select count(*) from (
            select from held where held.lane = :lane::smallint
              and (held.gate = :number::text or held.gate >= :number::text || ':' and held.gate < :number::text || ';')
            limit :bound::int) as few) as waiting
