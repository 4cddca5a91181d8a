-- When the next run of each (lane, priority) is due, looking from where the last look ended.
-- Index: later_due_idx.
select front.lane, front.priority, next.due_at,
       extract(epoch from next.due_at - clock_now())::double precision as seconds
from unnest(:lanes::smallint[], :priorities::smallint[], :fronts::timestamptz[]) as front (lane, priority, due_at)
cross join lateral (
    select later.due_at from later
    where later.lane = front.lane and later.priority = front.priority and later.due_at >= front.due_at
    order by later.due_at limit 1) as next
