-- Write down completions that came too late. Recording one twice is recording it once.
-- Index: stale primary key.
insert into stale (lane, run_id, fence, lease_id, worker_id, outcome)
select :lane::smallint, late.run_id, late.fence, late.lease, :worker::uuid, late.outcome::attempt_outcome
from unnest(:runs::uuid[], :fences::int[], :leases::uuid[], :outcomes::text[]) as late (run_id, fence, lease, outcome)
on conflict do nothing
