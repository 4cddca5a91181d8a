-- Probes have gone out at some openings of one lane.
-- Index: breaker_probe primary key.
insert into breaker_probe (lane, opening_id, sent, pause, probe_at)
select :lane::smallint, probe.opening_id, probe.sent, probe.pause, :now::double precision + probe.pause
from unnest(:ids::int[], :sent::int[], :pauses::double precision[]) as probe (opening_id, sent, pause)
order by probe.opening_id
on conflict (lane, opening_id) do update
set sent = excluded.sent, pause = excluded.pause, probe_at = excluded.probe_at
