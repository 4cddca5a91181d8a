-- The same where a node of a cluster is down: with a shared table in it, the statement would go to all of them.
select id, sum(beat)::bigint as beat, max(host) as host, max(pid) as pid, max(version) as version,
       min(started_at) as started_at, max(beat_at) as beat_at,
       extract(epoch from clock_now() - max(beat_at))::double precision as silent_seconds
from scheduler_heartbeat where lane = any (:lanes::smallint[])
group by id order by min(started_at), id
