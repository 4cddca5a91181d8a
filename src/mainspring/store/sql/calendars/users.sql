-- Schedules that use one of some calendars, in the order of their names, after the given one.
-- Index: schedule_calendars_idx.
select found.name, found.calendars
from lane cross join lateral (
    select schedule.name, schedule.calendars from schedule
    where schedule.lane = lane.lane and schedule.tenant_id = :tenant::int and schedule.name > :after::text
      and schedule.calendars is not null and schedule.calendars && :names::text[]
    order by schedule.name limit :count::int) as found
where lane.lane = any (:lanes::smallint[])
order by found.name limit :count::int
