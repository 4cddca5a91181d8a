-- The schedulers there are, each once: one counts in another lane while its own cannot be reached. Those of programs
-- before migration 21 have a table of their own.
select id, sum(beat)::bigint as beat, max(host) as host, max(pid) as pid, max(version) as version,
       min(started_at) as started_at, max(beat_at) as beat_at,
       extract(epoch from clock_now() - max(beat_at))::double precision as silent_seconds
from (
    select id, beat, host, pid, version, started_at, beat_at
    from scheduler_heartbeat where lane = any (:lanes::smallint[])
    union all
    select id, beat, host, pid, version, started_at, beat_at from scheduler
) as known
group by id order by min(started_at), id
