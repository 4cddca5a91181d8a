-- Workers that ended and still have leases in their name; a late claim may appear after the first sweep.
-- Index: primary keys; lease is small.
select distinct lease.worker_id as id
from lease join worker on worker.id = lease.worker_id
where lease.lane = any (:lanes::smallint[]) and worker.state <> 'live'
