-- One schedule by its name, and where its cursor stands.
-- Index: schedule_name_idx, then cursor_pkey.
select {schedule of schedule except options}, schedule.options::text as options, {standing of schedule},
       cursor.nominal_at, cursor.due_at, cursor.tzdata
from schedule left join lateral (
    select * from cursor where cursor.lane = :lane::smallint and cursor.schedule_id = schedule.id limit 1) as cursor on true
where schedule.lane = :lane::smallint and schedule.tenant_id = :tenant::int and schedule.name = :name::text
