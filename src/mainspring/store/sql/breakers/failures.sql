-- How many attempts of some breakers failed lately in one lane, whatever their values.
-- Index: breaker_tally primary key.
select tally.breaker_id, sum(tally.failures)::int as failures
from unnest(:breakers::int[], :withins::double precision[]) as counted (breaker_id, within)
join breaker_tally as tally
    on tally.lane = :lane::smallint and tally.breaker_id = counted.breaker_id
       and tally.since > date_part('epoch', clock_now()) - counted.within
group by tally.breaker_id
