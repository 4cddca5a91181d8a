-- How attempts of some values of one lane ended within the windows of their breakers.
-- Index: breaker_tally primary key.
select counted.breaker_id, counted.value, sum(tally.successes)::int as successes, sum(tally.failures)::int as failures
from unnest(:breakers::int[], :key_values::text[], :withins::double precision[]) as counted (breaker_id, value, within)
join breaker_tally as tally
    on tally.lane = :lane::smallint and tally.breaker_id = counted.breaker_id and tally.value = counted.value
       and tally.since > date_part('epoch', clock_now()) - counted.within
group by counted.breaker_id, counted.value
