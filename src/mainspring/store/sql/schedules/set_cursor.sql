-- Say which instant of a schedule is next. What was decided from where the cursor stood is stale.
-- Index: the primary keys.
insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata, calendars_revision, at_instant)
select :lane::smallint, schedule.id, :nominal_at::timestamptz, :due_at::timestamptz, :tzdata::text, :calendars_revision::bigint,
       schedule.overlap <> 'allow' or schedule.pause_after_failures is not null
from schedule where schedule.lane = :lane::smallint and schedule.id = :schedule::uuid
on conflict (lane, schedule_id) do update
set revision = cursor.revision + 1, nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata = excluded.tzdata,
    calendars_revision = excluded.calendars_revision, at_instant = excluded.at_instant
