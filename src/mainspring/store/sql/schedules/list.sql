-- Schedules of a tenant in the order of their names, after the given one and up to another: each lane gives its first
-- few. No name has a character that comes after `~`, or that itself.
-- Index: schedule_name_idx, then cursor_pkey.
select found.*, cursor.nominal_at, cursor.due_at, cursor.tzdata
from lane cross join lateral (
    select schedule.lane, {schedule of schedule except options}, schedule.options::text as options, {standing of schedule}
    from schedule
    where schedule.lane = lane.lane and schedule.tenant_id = :tenant::int
      and schedule.name > :after::text and schedule.name >= :prefix::text and schedule.name < :prefix::text || '~'
      and schedule.name <= :until::text
      and (:states::text[] is null or schedule.state::text = any (:states::text[]))
      and (:tags::text[] is null or schedule.tags @> :tags::text[])
    order by schedule.name limit :count::int) as found
left join lateral (
    select * from cursor where cursor.lane = found.lane and cursor.schedule_id = found.id limit 1) as cursor on true
where lane.lane = any (:lanes::smallint[])
order by found.name limit :count::int
