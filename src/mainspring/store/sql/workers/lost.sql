-- Workers that ended and still have leases in their name; a late claim may appear after the first sweep, and even after
-- the worker's row was pruned: a worker registers before it claims, so one without a row ended long ago.
-- Index: primary keys; lease is small.
select distinct lease.worker_id as id
from lease left join worker on worker.id = lease.worker_id
where lease.lane = any (:lanes::smallint[]) and worker.state is distinct from 'live'
