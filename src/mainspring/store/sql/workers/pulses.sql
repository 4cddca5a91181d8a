-- The heartbeats of all live workers: read, compared and judged by the reader's own clock. All counts are added up: a
-- worker counts in another lane while its own cannot be reached, and one of a program before migration 21 in its row, as
-- does a supervisor of before for a worker of now.
-- Index: the primary keys; the workers are read as a whole: they are few.
select id, sum(beat)::bigint as beat, max(lease_seconds) as lease_seconds, bool_or(beats_in_lane) as beats_in_lane
from (
    select worker.id, worker.beat, coalesce(worker.lost_after, worker.lease_seconds) as lease_seconds,
           worker.lost_after is not null as beats_in_lane
    from worker where worker.state = 'live'
    union all
    select worker.id, worker_heartbeat.beat, 0, false
    from worker_heartbeat join worker on worker.id = worker_heartbeat.worker_id
    where worker_heartbeat.lane = any (:lanes::smallint[]) and worker.state = 'live'
) as counted
group by id
