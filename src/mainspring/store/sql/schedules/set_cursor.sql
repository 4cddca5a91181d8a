-- Say which instant of a schedule is next. What was decided from where the cursor stood is stale.
-- Index: the primary key.
insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata, calendars_revision)
values (:lane::smallint, :schedule::uuid, :nominal_at::timestamptz, :due_at::timestamptz, :tzdata::text,
        :calendars_revision::bigint)
on conflict (lane, schedule_id) do update
set revision = cursor.revision + 1, nominal_at = excluded.nominal_at, due_at = excluded.due_at, tzdata = excluded.tzdata,
    calendars_revision = excluded.calendars_revision
