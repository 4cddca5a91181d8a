-- How many runs of a queue are in line, and how many wait because those are too many, by line and priority; counted up to a bound
-- in each lane.
-- Index: ready_claim_idx, held_gate_idx.
select line.id as line_id, front.priority, mark.high, mark.low,
       sum((select count(*) from (
           select ready.rank from ready
           where ready.lane = lane.lane and ready.line_id = line.id and ready.priority = front.priority
             and ready.rank <= rank_bound()
           order by ready.rank limit :bound::int) as few))::bigint as depth,
       sum((select count(*) from (
           select from held
           where held.lane = lane.lane and held.gate = mark_gate(lane.lane, line.id, front.priority)
           order by held.gate, held.turn limit :bound::int) as few))::bigint as waiting
from lane cross join line cross join unnest(:priorities::smallint[]) as front (priority)
cross join lateral (
    select coalesce(queue.high_mark, :high::int) as high, coalesce(queue.low_mark, coalesce(queue.high_mark, :high::int) / 2) as low
    from (select 1) as one left join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue) as mark
where line.tenant_id = :tenant::int and line.queue = :queue::text
group by line.id, front.priority, mark.high, mark.low
