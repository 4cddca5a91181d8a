-- Forget what no breaker looks back at any more, in one lane: up to so many. Answers how many that were.
-- Index: breaker_tally_until_idx, breaker_tally primary key.
with gone as (
    delete from breaker_tally
    where breaker_tally.lane = :lane::smallint
      and (breaker_tally.breaker_id, breaker_tally.value, breaker_tally.since) in (
          select old.breaker_id, old.value, old.since from breaker_tally as old
          where old.lane = :lane::smallint and old.until < date_part('epoch', clock_now())
          order by old.until limit :count::int)
    returning 1)
select count(*) from gone
