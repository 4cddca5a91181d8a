-- When the next run of each (lane, priority) is due, looking from where the last look ended.
-- Index: later_due_idx.
with next as materialized (
    select lane.lane, front.priority, (
        select later.due_at from later
        where later.lane = lane.lane /* and later.lane = any (:lanes::smallint[]) */ and later.priority = front.priority and later.due_at >= front.due_at
        order by later.due_at limit 1) as due_at
    from lane
    join unnest(:lanes::smallint[], :priorities::smallint[], :fronts::timestamptz[]) as front (lane, priority, due_at)
        on front.lane = lane.lane /* and lane.lane = any (:lanes::smallint[]) */
)
select lane, priority, due_at, extract(epoch from due_at - clock_now())::double precision as seconds
from next where due_at is not null
