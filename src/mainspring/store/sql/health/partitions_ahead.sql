-- For how many days from today on history has its partitions, without a gap, and the first day without.
select days, today + days as end
from (
    select coalesce(min(ahead) filter (where to_regclass('attempt_' || to_char(today + ahead, 'YYYYMMDD')) is null), 30)
               as days, today
    from (select (clock_now() at time zone 'UTC')::date as today) as now cross join generate_series(0, 29) as ahead
    group by today
) as counted
