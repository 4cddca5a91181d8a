-- The schedules of a tenant that are declared in code.
-- Index: schedule_declared_idx.
select schedule.name, schedule.job_id, schedule.spec
from lane join schedule on schedule.lane = lane.lane
where lane.lane = any (:lanes::smallint[]) and schedule.is_declared and schedule.tenant_id = :tenant::int
order by schedule.name limit :count::int
