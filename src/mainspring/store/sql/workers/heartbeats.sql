-- How these workers are doing, as they said last.  Index: the primary key.
select worker_id as id, max(unsettled) as unsettled, max(unsettled_since) as unsettled_since,
       max(beat_at) as heartbeat_at, extract(epoch from clock_now() - max(beat_at))::double precision as silent_seconds
from worker_heartbeat where lane = any (:lanes::smallint[]) and worker_id = any (:workers::uuid[])
group by worker_id
