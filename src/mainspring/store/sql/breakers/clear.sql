-- Forget how attempts of one value ended: its breaker has closed.
-- Index: breaker_tally primary key.
delete from breaker_tally
where breaker_tally.lane = :lane::smallint and breaker_tally.breaker_id = :breaker::int
  and breaker_tally.value = :value::text
