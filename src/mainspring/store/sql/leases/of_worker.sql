-- The leases in a worker's name, with their sizes and which of their runs are to be cancelled.
-- Index: lease_worker_idx.
select lane, id, bit_length(done) as size, case when bit_count(cancel) > 0 then cancel::text end as cancelled
from lease where lane = any (:lanes::smallint[]) and worker_id = :worker::uuid
