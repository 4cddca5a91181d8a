-- Live workers that may claim runs of a line, and how many of its runs each holds, as it said last; the busiest first.
select worker.id as worker_id, worker.host, worker.pid, worker.slots, coalesce(sum(told.holding), 0)::int as holding
from worker
left join worker_tally as told
    on told.lane = any (:lanes::smallint[]) and told.worker_id = worker.id and told.line_id = :line::int
where worker.state = 'live' and worker.drain_requested_at is null and worker.queues @> array[:queue::text]
  and worker.labels @> :labels::text[]
group by worker.id order by holding desc, worker.id limit 100
