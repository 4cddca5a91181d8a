-- What waits in each line, counted up to a bound per lane, and since when the oldest does.
-- Index: ready_claim_idx. Without a tenant, the lines of all of them.
-- Lines and priorities are unnested beside their lane: a LIMIT may refer to that on Citus, and to no shared table.
with place as (
    select lane.lane, unnest(array(select id from line where tenant_id = coalesce(:tenant::int, tenant_id))) as line_id from lane
), front as (
    select place.lane, place.line_id, unnest(:priorities::smallint[]) as priority from place
), oldest as (
    select front.lane, front.line_id, min(first.ready_at) as ready_at
    from front left join lateral (
        select ready.ready_at from ready
        where ready.lane = front.lane and ready.line_id = front.line_id and ready.priority = front.priority
          and ready.rank <= rank_bound()
        order by ready.rank limit 1) as first on true
    group by front.lane, front.line_id
), waiting as (
    select front.lane, front.line_id, sum(counted.depth)::bigint as depth
    from front cross join lateral (
        select count(*) as depth from (
            select from ready
            where ready.lane = front.lane and ready.line_id = front.line_id and ready.priority = front.priority
              and ready.rank <= rank_bound()
            order by ready.rank limit :bound::int) as few) as counted
    group by front.lane, front.line_id
)
select line.id as line_id, line.queue, line.labels, queue.paused_at, queue.paused_by, queue.pause_reason,
       sum(least(waiting.depth, :bound::int))::bigint as depth,
       extract(epoch from clock_now() - min(oldest.ready_at))::double precision as oldest_seconds
from oldest
join waiting on waiting.lane = oldest.lane and waiting.line_id = oldest.line_id
join line on line.id = oldest.line_id
left join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
group by line.id, line.queue, line.labels, queue.paused_at, queue.paused_by, queue.pause_reason
order by line.queue, line.id
