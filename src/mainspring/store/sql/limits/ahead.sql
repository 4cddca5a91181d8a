-- How many runs come before one at its gate in one lane, counted up to a bound, and who holds slots there.
-- Of equal turns, who stands first in the table passes first: `limits/next_turns` reads the index, which has them in that
-- order. So the first rows of the index are all that has to be read, however many are equal.
-- Index: held_gate_idx, slot_gate_idx.
select (select count(*) from (
            select held.turn, held.ctid as position from held
            where held.lane = :lane::smallint and held.gate = :gate::text and held.turn <= :turn::bigint
            order by held.gate, held.turn limit :bound::int) as few
        where (few.turn, few.position) < (:turn::bigint, :position::tid)) as ahead,
       array(select slot.run_id from slot
             where slot.lane = :lane::smallint and slot.gate = :gate::text limit :most::int) as holders
