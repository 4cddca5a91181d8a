-- Schedules that somebody paused, among the first so many of each lane.  Index: schedule_pkey.
select found.name, found.pause_reason
from lane cross join lateral (
    select few.name, few.pause_reason
    from (
        select schedule.name, schedule.paused_by, schedule.pause_reason from schedule
        where schedule.lane = lane.lane order by schedule.id limit :bound::int) as few
    where few.paused_by = :actor::text) as found
where lane.lane = any (:lanes::smallint[])
order by found.name limit 1000
