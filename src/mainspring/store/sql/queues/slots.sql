-- How many slots live workers have for each queue, and which workers those are.
select queue.name as queue, worker.id, worker.slots
from worker cross join lateral unnest(worker.queues) as queue (name)
where worker.state = 'live' and worker.drain_requested_at is null
