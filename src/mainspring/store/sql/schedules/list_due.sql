-- The next so many cursors, in the order in which they are due; with their schedules, where those are what is wanted.
-- One that is not has no id: so a look is bounded whatever is wanted. Those due at one instant are sorted by their ids.
-- Each lane looks its schedules up before lanes are merged: after that, Citus could not.
-- Index: cursor_due_idx, then schedule_pkey: `limit 1`, so that nothing but the key finds the row.
select due.due_at, due.nominal_at, due.tzdata, due.schedule_id, found.*
from lane cross join lateral (
    select cursor.schedule_id, cursor.nominal_at, cursor.due_at, cursor.tzdata from cursor
    where cursor.lane = lane.lane and cursor.due_at < :before::timestamptz and cursor.due_at >= :since::timestamptz
      and (cursor.due_at, cursor.schedule_id) > (:since::timestamptz, :since_id::uuid)
    order by cursor.due_at, cursor.schedule_id limit :count::int) as due
left join lateral (
    select {schedule of schedule except options}, schedule.options::text as options, {standing of schedule}
    from (select * from schedule where schedule.lane = lane.lane and schedule.id = due.schedule_id limit 1) as schedule
    where schedule.tenant_id = :tenant::int
      and schedule.state = 'active' and (:states::text[] is null or schedule.state::text = any (:states::text[]))
      and (:job::int is null or schedule.job_id = :job::int) and starts_with(schedule.name, :prefix::text)
      and (:tags::text[] is null or schedule.tags @> :tags::text[])) as found on true
where lane.lane = any (:lanes::smallint[])
order by due.due_at, due.schedule_id limit :count::int
