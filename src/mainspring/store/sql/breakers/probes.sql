-- How many probes have gone out at some openings of one lane, and when the next ones may.
-- Index: breaker_probe primary key.
select probe.opening_id, probe.sent, probe.probe_at, probe.error from breaker_probe as probe
where probe.lane = :lane::smallint and probe.opening_id = any (:ids::int[])
