-- The schedulers there are.
select id, beat, host, pid, version, started_at, beat_at,
       extract(epoch from clock_now() - beat_at)::double precision as silent_seconds
from scheduler order by started_at, id
