-- What waits in each line, counted up to a bound per lane, and since when the oldest does.
-- Index: ready_claim_idx. Without a tenant, the lines of all of them. Of lines known to be empty one priority is looked at.
-- Subqueries for values: on Citus, a LIMIT in FROM may refer neither to a shared table nor to a function.
select line.id as line_id, line.tenant_id, line.queue, line.labels, queue.paused_at, queue.paused_by, queue.pause_reason,
       sum(least(waiting.depth, :bound::int))::bigint as depth,
       extract(epoch from clock_now() - min(waiting.oldest_at))::double precision as oldest_seconds
from (
    select lane.lane, line.id as line_id,
           sum((select count(*) from (
               select ready.rank from ready
               where ready.lane = lane.lane and ready.line_id = line.id and ready.priority = front.priority
                 and ready.rank <= rank_bound()
               order by ready.rank limit :bound::int) as few))::bigint as depth,
           min((select ready.ready_at from ready
                where ready.lane = lane.lane and ready.line_id = line.id and ready.priority = front.priority
                  and ready.rank <= rank_bound()
                order by ready.rank limit 1)) as oldest_at
    from lane cross join line cross join unnest(:priorities::smallint[]) as front (priority)
    where line.tenant_id = coalesce(:tenant::int, line.tenant_id)
      and (:in_use::int[] is null or front.priority = 0 or line.id = any (:in_use::int[]))
    group by lane.lane, line.id) as waiting
join line on line.id = waiting.line_id
left join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
group by line.id, line.tenant_id, line.queue, line.labels, queue.paused_at, queue.paused_by, queue.pause_reason
order by line.queue, line.id
