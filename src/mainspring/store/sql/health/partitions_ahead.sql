-- For how many days from today on history has its partitions, without a gap.
select coalesce(min(ahead) filter (where to_regclass('attempt_' || to_char(today + ahead, 'YYYYMMDD')) is null), 30)
from (select (clock_now() at time zone 'UTC')::date as today) as now
cross join generate_series(0, 29) as ahead
