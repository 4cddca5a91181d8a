-- What the active schedules of a tenant say, and how many say the same: one name of each, or all where H goes by them.
-- Index: schedule_name_idx, of which `> ''` says as much as is needed to use it.
select found.spec, count(*) as count,
       case when found.spec ~ '"when":"[^"]*H' then array_agg(found.name order by found.name)
            else array[min(found.name)] end as names
from lane cross join lateral (
    select schedule.spec, schedule.name from schedule
    where schedule.lane = lane.lane and schedule.tenant_id = :tenant::int and schedule.state = 'active'
      and schedule.name > ''
    order by schedule.name limit :bound::int) as found
where lane.lane = any (:lanes::smallint[])
group by found.spec
