-- In how many seconds the next instant of any schedule is due, by lane: of those that are staged ahead of it, and of those that
-- are not; and the database's clock.
-- Index: cursor_due_idx, cursor_instant_idx.
select lane.lane, clock_now() as now,
       extract(epoch from (select cursor.due_at from cursor where cursor.lane = lane.lane /* and cursor.lane = any (:lanes::smallint[]) */ and cursor.due_at is not null
                             and not cursor.at_instant
                           order by cursor.due_at limit 1) - clock_now())::double precision as seconds,
       extract(epoch from (select cursor.due_at from cursor where cursor.lane = lane.lane /* and cursor.lane = any (:lanes::smallint[]) */ and cursor.at_instant
                           order by cursor.due_at limit 1) - clock_now())::double precision as instant_seconds
from lane where lane.lane = any (:lanes::smallint[])
