-- How many runs come before one at its gate in one lane, counted up to a bound, and who holds slots there.
-- Index: held_gate_idx, slot_gate_idx.
select (select count(*) from (
            select from held
            where held.lane = :lane::smallint and held.gate = :gate::text and held.turn < :turn::bigint
            limit :bound::int) as few) as ahead,
       array(select slot.run_id from slot
             where slot.lane = :lane::smallint and slot.gate = :gate::text limit :most::int) as holders
