-- Which of these lines have something to claim, each in one lane, or will have: in how many seconds, 0 for now. One look
-- instead of lanes × lines × priorities.
-- Index: ready_claim_idx.
select first.lane, first.line, greatest(0, (first.rank - rank_bound()) / 1000000.0)::double precision as seconds
from (
    -- A subquery for a value: on Citus, a LIMIT beside a function in FROM is refused.
    select lane.lane, pair.line, min((
        -- In the order of the index: without statistics anything else would search the whole lane.
        select ready.rank from ready
        where ready.lane = lane.lane /* and ready.lane = any (:lanes::smallint[]) */ and ready.line_id = pair.line and ready.priority = front.priority
        order by ready.rank limit 1)) as rank
    from lane join unnest(:lanes::smallint[], :lines::int[]) as pair (lane, line) on pair.lane = lane.lane
        /* and lane.lane = any (:lanes::smallint[]) */
    cross join unnest(:priorities::smallint[]) as front (priority)
    where not exists (
        select from line join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
        where line.id = pair.line and queue.paused_at is not null)
    group by lane.lane, pair.line) as first
where first.rank is not null
