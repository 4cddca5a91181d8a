-- At which gates of one limit runs wait in one lane: one step of the index for each, however many they are.
-- Index: held_gate_idx.
with recursive found as (
    (select held.gate, 1 as number from held
     where held.lane = :lane::smallint and held.gate > :after::text and held.gate < :number::text || ';'
     order by held.gate, held.turn limit 1)
    union all
    select following.gate, found.number + 1
    from found cross join lateral (
        select held.gate from held
        where held.lane = :lane::smallint and held.gate > found.gate and held.gate < :number::text || ';'
        order by held.gate, held.turn limit 1) as following
    where found.number < :count::int
)
select found.gate from found
