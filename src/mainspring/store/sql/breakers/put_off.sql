-- Probes at some openings of one lane have failed: the next ones wait from now on.
-- Index: breaker_probe primary key.
update breaker_probe
set probe_at = greatest(breaker_probe.probe_at, date_part('epoch', clock_now()) + breaker_probe.pause),
    failed_at = date_part('epoch', clock_now()), error = failed.error
from unnest(:ids::int[], :errors::text[]) as failed (opening_id, error)
where breaker_probe.lane = :lane::smallint and breaker_probe.opening_id = failed.opening_id
