-- Add to how attempts ended, in the present slices of time, for values of one lane. In one order, so that nobody waits in a
-- circle.
-- Index: breaker_tally primary key.
insert into breaker_tally (lane, breaker_id, value, since, until, successes, failures)
select :lane::smallint, counted.breaker_id, counted.value, slice.since, slice.since + counted.width + counted.within,
       counted.successes, counted.failures
from unnest(:breakers::int[], :key_values::text[], :widths::double precision[], :withins::double precision[],
            :successes::int[], :failures::int[])
     as counted (breaker_id, value, width, within, successes, failures)
cross join lateral (
    select floor(date_part('epoch', clock_now()) / counted.width) * counted.width as since) as slice
order by counted.breaker_id, counted.value
on conflict (lane, breaker_id, value, since) do update
set successes = breaker_tally.successes + excluded.successes, failures = breaker_tally.failures + excluded.failures
