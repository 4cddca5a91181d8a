-- How many runs wait in each lane, counted up to a bound.  Index: the primary keys.
select lane.lane,
       (select count(*) from (select from ready where ready.lane = lane.lane limit :bound::int) as few)
       + (select count(*) from (select from later where later.lane = lane.lane limit :bound::int) as few) as waiting
from lane where lane.lane = any (:lanes::smallint[])
order by lane.lane
