-- How many attempts of some breakers failed lately in one lane, whatever their values: of the first so many rows.
-- Index: breaker_tally primary key.
select counted.breaker_id, sum(tally.failures)::int as failures
from unnest(:breakers::int[], :withins::double precision[]) as counted (breaker_id, within) cross join lateral (
    select breaker_tally.failures from breaker_tally
    where breaker_tally.lane = :lane::smallint and breaker_tally.breaker_id = counted.breaker_id
      and breaker_tally.since > date_part('epoch', clock_now()) - counted.within
    order by breaker_tally.breaker_id, breaker_tally.value limit :bound::int) as tally
group by counted.breaker_id
