-- In how many seconds the next instant of any schedule is due, by lane; and the database's clock.
-- Index: cursor_due_idx.
select lane.lane, clock_now() as now,
       extract(epoch from (select cursor.due_at from cursor where cursor.lane = lane.lane /* and cursor.lane = any (:lanes::smallint[]) */ and cursor.due_at is not null
                           order by cursor.due_at limit 1) - clock_now())::double precision as seconds
from lane where lane.lane = any (:lanes::smallint[])
