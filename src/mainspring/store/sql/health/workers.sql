-- Workers that should worry us: silent for longer than their lease time and not declared lost by anyone.
select count(*) as live,
       count(*) filter (where beat_at < clock_now() - 2 * lease_seconds * interval '1 second') as silent,
       count(*) filter (where unsettled_since is not null) as unable,
       coalesce(sum(unsettled), 0)::bigint as unsettled
from (
    select id, max(beat_at) as beat_at, max(lease_seconds) as lease_seconds, max(unsettled) as unsettled,
           max(unsettled_since) as unsettled_since
    from (
        select worker.id, worker.beat_at, coalesce(worker.lost_after, worker.lease_seconds) as lease_seconds,
               worker.unsettled, worker.unsettled_since
        from worker where worker.state = 'live'
        union all
        select worker.id, worker_heartbeat.beat_at, 0, worker_heartbeat.unsettled, worker_heartbeat.unsettled_since
        from worker_heartbeat join worker on worker.id = worker_heartbeat.worker_id
        where worker_heartbeat.lane = any (:lanes::smallint[]) and worker.state = 'live'
    ) as said
    group by id
) as living
