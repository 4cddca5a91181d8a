-- Up to which name a look may go that reads so many schedules of a job in each lane, after the given one: null if that
-- is all.
-- Index: schedule_job_idx.
select min(last.name) from lane cross join lateral (
    select schedule.name from schedule
    where schedule.lane = lane.lane and schedule.job_id = :job::int and schedule.tenant_id = :tenant::int
      and schedule.name > :after::text and schedule.name >= :prefix::text and schedule.name < :prefix::text || '~'
    order by schedule.name offset :scan::int - 1 limit 1) as last
where lane.lane = any (:lanes::smallint[])
