-- Lock a schedule's cursor, after the schedule: nothing of it fires until the transaction ends.
-- Index: cursor_pkey.
select revision, nominal_at, due_at, tzdata, calendars_revision from cursor
where lane = :lane::smallint and schedule_id = :schedule::uuid
for update
