-- At which gates runs wait in one lane, after a given one: one step of the index for each, however many they are.
-- Index: held_gate_idx.
with recursive found as (
    (select held.gate, 1 as number from held
     where held.lane = :lane::smallint and held.gate > :after::text
     order by held.gate, held.turn limit 1)
    union all
    select following.gate, found.number + 1
    from found cross join lateral (
        select held.gate from held
        where held.lane = :lane::smallint and held.gate > found.gate
        order by held.gate, held.turn limit 1) as following
    where found.number < :count::int
)
select found.gate from found
