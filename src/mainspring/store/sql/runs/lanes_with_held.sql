-- Lanes in which runs are held.
-- Index: held_list_idx.
select lane.lane
from lane
where lane.lane = any (:lanes::smallint[]) and (
    -- In the order of the index, and not just `exists`: joined as a whole, it would read all that is held.
    select true from held
    where held.lane = lane.lane /* and held.lane = any (:lanes::smallint[]) */ and held.line_id >= 0   -- all; but not `is not null`, which the planner drops unused
    order by held.job_id, held.line_id, held.id limit 1)
