-- How many runs wait in each lane, counted up to a bound.  Index: the primary keys.
select lanes.lane,
       (select count(*) from (select from ready where ready.lane = lanes.lane limit :bound::int) as few)
       + (select count(*) from (select from later where later.lane = lanes.lane limit :bound::int) as few) as waiting
from unnest(:lanes::smallint[]) as lanes (lane)
order by lanes.lane
