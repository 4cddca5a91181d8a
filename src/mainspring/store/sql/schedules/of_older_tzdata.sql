-- Schedules of one lane whose cursors an older release of the time zone database computed, after the given one.
-- Index: cursor_pkey, then schedule_pkey: `limit 1`, since a join would be planned by how full tables are.
select next.schedule_id, next.nominal_at, schedule.tenant_id, schedule.name, schedule.spec
from (
    select cursor.schedule_id, cursor.nominal_at from cursor
    where cursor.lane = :lane::smallint and cursor.schedule_id > :past::uuid and cursor.tzdata < :tzdata::text collate "C"
    order by cursor.schedule_id limit :count::int) as next
cross join lateral (
    select * from schedule where schedule.lane = :lane::smallint and schedule.id = next.schedule_id limit 1) as schedule
order by next.schedule_id
