-- Say which instants of some schedules without calendars are next. What was decided from where the cursors stood is stale.
-- Index: the primary keys.
insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata, at_instant)
select :lane::smallint, schedule.id, item.nominal_at, item.due_at, :tzdata::text,
       schedule.overlap <> 'allow' or schedule.pause_after_failures is not null
from unnest(:schedules::uuid[], :nominal_at::timestamptz[], :due_at::timestamptz[]) as item (id, nominal_at, due_at)
join schedule on schedule.lane = :lane::smallint and schedule.id = item.id
where schedule.id = any (:schedules::uuid[])
on conflict (lane, schedule_id) do update
set revision = cursor.revision + 1, nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata = excluded.tzdata,
    calendars_revision = null, at_instant = excluded.at_instant
