-- Schedules of some lanes of which somebody saw that they failed too often, and that nobody has looked at since.
-- Index: schedule_failure_reached_idx.
select lane.lane, found.schedule_id
from lane cross join lateral (
    select distinct schedule_failure.schedule_id from schedule_failure
    where schedule_failure.lane = lane.lane /* and schedule_failure.lane = any (:lanes::smallint[]) */
      and schedule_failure.has_reached) as found
where lane.lane = any (:lanes::smallint[])
