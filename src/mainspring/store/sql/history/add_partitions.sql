-- Make sure history has its partitions from yesterday to a few days ahead; answers how many were missing.
select count(*) filter (where add_history_partition(day::date))
from generate_series((clock_now() at time zone 'UTC')::date - 1,
                     (clock_now() at time zone 'UTC')::date + :days_ahead::int, interval '1 day') as day
