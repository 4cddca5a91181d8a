-- Lanes in which a run has ended that another one waits for, or in which it is time to look whether one has.
-- Index: dependency_news_idx, dependency_check_idx.
select lane.lane
from lane
where lane.lane = any (:lanes::smallint[]) and (
    -- In the order of the indexes: see runs/lanes_with_held.
    (select true from dependency
     where dependency.lane = lane.lane /* and dependency.lane = any (:lanes::smallint[]) */ and dependency.is_news
     order by dependency.child_id limit 1)
    or (select true from dependency
        where dependency.lane = lane.lane /* and dependency.lane = any (:lanes::smallint[]) */
          and dependency.check_at <= clock_now()
        order by dependency.check_at limit 1))
