-- Every occurrence that fired at an instant or later, in the order of firing; also of schedules that are gone by now.
-- For tests of applications: no index carries it.
select known.name, fired.nominal_at, fired.due_at, fired.run_id
from (
    select lane, schedule_id, nominal_at, due_at, run_id, fired_at from occurrence
    union all
    select lane, schedule_id, nominal_at, due_at, run_id, fired_at from occurrence_past
) as fired
join (
    select lane, id, tenant_id, name from schedule
    union
    select lane, schedule_id, tenant_id, name from schedule_version
) as known on known.lane = fired.lane and known.id = fired.schedule_id
where fired.fired_at >= :since::timestamptz and known.tenant_id = :tenant::int
order by fired.fired_at, fired.due_at, fired.nominal_at, known.name
