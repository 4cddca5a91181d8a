-- Forget the probes of breakers that have closed, in one lane.
-- Index: breaker_probe primary key.
delete from breaker_probe
where breaker_probe.lane = :lane::smallint
  and not exists (select from breaker_opening where breaker_opening.id = breaker_probe.opening_id)
