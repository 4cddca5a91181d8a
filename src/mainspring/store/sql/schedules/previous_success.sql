-- The latest instant of one schedule, before another one, whose run succeeded; among the last so many.
-- Index: schedule_name_idx, occurrence_pkey, occurrence_past_pkey, then attempt_run_idx since the instant fired (a day
-- earlier, for a server whose clock was set back).
with named as (
    select id from schedule where lane = :lane::smallint and tenant_id = :tenant::int and name = :name::text
)
select earlier.nominal_at
from (
    select nominal_at, run_id, fired_at from (
        (select nominal_at, run_id, fired_at from occurrence
         where lane = :lane::smallint and schedule_id = (select id from named) and nominal_at < :before::timestamptz
         order by nominal_at desc limit :count::int)
        union all
        (select nominal_at, run_id, fired_at from occurrence_past
         where lane = :lane::smallint and schedule_id = (select id from named) and nominal_at < :before::timestamptz
         order by nominal_at desc limit :count::int)) as fired
    order by nominal_at desc limit :count::int) as earlier
cross join lateral (
    select from attempt
    where attempt.lane = :lane::smallint and attempt.run_id = earlier.run_id and attempt.state = 'succeeded'
      and attempt.recorded_at >= earlier.fired_at - interval '1 day'
    limit 1) as success
order by earlier.nominal_at desc limit 1
