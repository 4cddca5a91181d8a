-- At which gates of one lane somebody may pass, among those at which runs wait between two given ones; and which was the last of
-- about so many that were looked at, null if that was all. Where all slots are given out in this lane, nobody may, unless he
-- has kept his, and has the turn 0. What is no limit, or not counted here (a rate, a limit that is gone, a breaker, a schedule, a
-- line), is open as far as this look knows. Who shares a limit is looked at together: some gates stand for all.
-- Entries of the index are read in pieces: one by one would cost most where one run waits at each gate, all of them where many do.
-- Index: held_gate_idx, slot_gate_idx.
with recursive piece as (
    select :after::text collate "C" as last, '{}'::text[] collate "C" as gates, '{}'::bigint[] as turns, 0 as looked_at
    union all
    select following.last, following.gates, following.turns, piece.looked_at + cardinality(following.gates)
    from piece cross join lateral (
        select max(gate.gate) as last, array_agg(gate.gate) as gates, array_agg(gate.turn) as turns
        from (select distinct on (entry.gate) entry.gate, entry.turn
              from (select held.gate, held.turn from held
                    where held.lane = :lane::smallint and held.gate < :before::text
                      and held.gate > case when split_part(piece.last, ':', 1) like '%=' then split_part(piece.last, ':', 1) || ';'
                                           else piece.last end
                    order by held.gate, held.turn limit 50) as entry
              order by entry.gate, entry.turn) as gate) as following
    where piece.looked_at < :count::int and following.last is not null
), looked_at as (
    select gate.gate, rule.most is null or rule.share <> '' or gate.turn = 0 or not exists (
               select from slot
               where slot.lane = :lane::smallint and slot.gate = gate.gate
               offset rule.most - 1 limit 1) as is_open
    from piece cross join lateral unnest(piece.gates, piece.turns) as gate (gate, turn)
    left join limit_rule as rule on rule.id = rtrim(split_part(gate.gate, ':', 1), '!=')::int
)
select array(select looked_at.gate from looked_at where looked_at.is_open order by looked_at.gate) as gates,
       (select max(piece.last) from piece having max(piece.looked_at) >= :count::int) as last
