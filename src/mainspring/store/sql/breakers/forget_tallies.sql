-- Forget what no breaker looks back at any more, in one lane.
-- Index: breaker_tally primary key.
delete from breaker_tally where breaker_tally.lane = :lane::smallint and breaker_tally.until < date_part('epoch', clock_now())
