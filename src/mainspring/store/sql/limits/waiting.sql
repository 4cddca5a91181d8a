-- At one gate in one lane: who is next, and how many wait, counted up to a bound.
-- Index: held_gate_idx.
select (select held.id from held
        where held.lane = :lane::smallint and held.gate = :gate::text order by held.gate, held.turn limit 1) as first_id,
       (select held.turn from held
        where held.lane = :lane::smallint and held.gate = :gate::text order by held.gate, held.turn limit 1) as first_turn,
       (select count(*) from (
            select from held where held.lane = :lane::smallint and held.gate = :gate::text limit :bound::int) as few)
       as waiting
