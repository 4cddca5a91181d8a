-- The next so many cursors, in the order in which they are due; with their schedules, where those are what is wanted.
-- One that is not has no id: so a look is bounded whatever is wanted. Those due at one instant are sorted by their ids.
-- Index: cursor_due_idx, then schedule_pkey: `limit 1`, so that nothing but the key finds the row.
select next.due_at, next.nominal_at, next.tzdata, next.schedule_id, found.*
from (
    select lane.lane, due.* from lane cross join lateral (
        select cursor.schedule_id, cursor.nominal_at, cursor.due_at, cursor.tzdata from cursor
        where cursor.lane = lane.lane and cursor.due_at < :before::timestamptz and cursor.due_at >= :since::timestamptz
          and (cursor.due_at, cursor.schedule_id) > (:since::timestamptz, :since_id::uuid)
        order by cursor.due_at, cursor.schedule_id limit :count::int) as due
    where lane.lane = any (:lanes::smallint[])
    order by due.due_at, due.schedule_id limit :count::int) as next
left join lateral (
    select {schedule of schedule except options}, schedule.options::text as options, {standing of schedule}
    from (select * from schedule where schedule.lane = next.lane and schedule.id = next.schedule_id limit 1) as schedule
    where schedule.tenant_id = :tenant::int
      and schedule.state = 'active' and (:states::text[] is null or schedule.state::text = any (:states::text[]))
      and (:job::int is null or schedule.job_id = :job::int) and starts_with(schedule.name, :prefix::text)
      and (:tags::text[] is null or schedule.tags @> :tags::text[])) as found on true
order by next.due_at, next.schedule_id
