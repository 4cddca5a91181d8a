-- Say which instants of some schedules without calendars are next. What was decided from where the cursors stood is stale.
-- Index: the primary key.
insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata)
select :lane::smallint, item.id, item.nominal_at, item.due_at, :tzdata::text
from unnest(:schedules::uuid[], :nominal_at::timestamptz[], :due_at::timestamptz[]) as item (id, nominal_at, due_at)
on conflict (lane, schedule_id) do update
set revision = cursor.revision + 1, nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata = excluded.tzdata,
    calendars_revision = null
