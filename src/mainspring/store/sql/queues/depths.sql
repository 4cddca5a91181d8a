-- What waits in each line, counted up to a bound per lane, and since when the oldest does.
-- Index: ready_claim_idx.
select line.id as line_id, line.queue, queue.paused_at, queue.paused_by, queue.pause_reason,
       sum(waiting.depth)::bigint as depth,
       extract(epoch from clock_now() - min(waiting.oldest))::double precision as oldest_seconds
from lane cross join line
left join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
cross join lateral (
    select (select count(*) from (
                select ready.id from ready where ready.lane = lane.lane and ready.line_id = line.id
                order by ready.priority, ready.rank limit :bound::int) as few) as depth,
           (select min(first.ready_at)
            from unnest(:priorities::smallint[]) as of_priority (priority)
            cross join lateral (
                select ready.ready_at from ready
                where ready.lane = lane.lane and ready.line_id = line.id and ready.priority = of_priority.priority
                order by ready.rank limit 1) as first) as oldest
) as waiting
where line.tenant_id = :tenant::int
group by line.id, line.queue, queue.paused_at, queue.paused_by, queue.pause_reason
order by line.queue, line.id
