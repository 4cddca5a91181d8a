-- How many schedules a tenant has, counted up to a bound; and how many pages those of all tenants fill.
-- Index: schedule_name_idx, of which `> ''` says as much as is needed to use it.
select (select count(*) from (
            select found.name from lane cross join lateral (
                select schedule.name from schedule
                where schedule.lane = lane.lane and schedule.tenant_id = :tenant::int and schedule.name > ''
                order by schedule.name limit :bound::int) as found
            where lane.lane = any (:lanes::smallint[]) limit :bound::int) as few) as schedules,
       pg_relation_size('schedule') / current_setting('block_size')::int as pages
