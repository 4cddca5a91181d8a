-- How many runs of some schedules have not ended in one lane, but for those that wait for earlier ones.
-- Index: schedule_run_schedule_idx.
select '0!:' || schedule_run.schedule_id::text as gate, count(*) as held
from schedule_run
where schedule_run.lane = :lane::smallint and schedule_run.schedule_id = any (:schedules::uuid[]) and not schedule_run.is_dead
  and not exists (
      select from held
      where held.lane = :lane::smallint and held.id = schedule_run.run_id
        and held.gate is not distinct from '0!:' || schedule_run.schedule_id::text)
group by schedule_run.schedule_id
