-- The schedules of one lane whose next instant is due, or will be within the horizon; with what is needed to decide it.
-- Hot.  Index: cursor_due_idx, then schedule_pkey, schedule_failure_pkey: `limit 1`, since a join would be planned by how full tables are.
-- The revision of all calendars is read once: by it, a scheduler knows whether the calendars that it has kept are current.
select clock_now() as now, next.schedule_id, next.revision, next.nominal_at, next.due_at, schedule.tenant_id, schedule.name,
       schedule.job_id, schedule.spec, schedule.options::text as options, schedule.catch_up, schedule.catch_up_seconds,
       schedule.overlap,
       schedule.state = 'paused' as is_paused, schedule.paused_until, schedule.calendars, next.tzdata, next.calendars_revision,
       case when schedule.pause_after_failures is not null then schedule.pause_after_failures <= (
           select count(schedule_failure.failed_at) from schedule_failure
           where schedule_failure.lane = :lane::smallint and schedule_failure.schedule_id = next.schedule_id)
       end as is_failing,
       (select calendar_revision.revision from calendar_revision) as newest_calendars
from (
    select cursor.schedule_id, cursor.revision, cursor.nominal_at, cursor.due_at, cursor.tzdata, cursor.calendars_revision
    from cursor
    where cursor.lane = :lane::smallint and cursor.due_at <= clock_now() + :horizon::double precision * interval '1 second'
      and (not cursor.at_instant or cursor.due_at <= clock_now())
    order by cursor.due_at limit :count::int offset :passed_over::int) as next
cross join lateral (
    select * from schedule where schedule.lane = :lane::smallint and schedule.id = next.schedule_id limit 1) as schedule
