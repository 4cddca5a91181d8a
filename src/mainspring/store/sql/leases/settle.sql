-- The one guarded statement through which every run leaves its lease: it sets the runs' `done` bits if none of them
-- was set and the lease is still this worker's, and says which of them someone asked to cancel, and whether any run waits
-- for others of this lane, as far as the time in their ids tells.
-- Moves: complete, retry, snooze, bury, hold, await_children, give_back, lose, cancel, expire.  Hot.
-- Index: lease primary key; dependency_pkey.
-- A lease that does not come back was settled before (a resent COMMIT) or is no longer ours: the caller looks which.
update lease set done = lease.done | result.mask::varbit
from unnest(:leases::uuid[], :masks::text[]) as result (id, mask)
where lease.lane = :lane::smallint and lease.id = result.id
  and lease.worker_id is not distinct from :worker::uuid   -- not `=`: lease_worker_idx crawls over dead leases
  and bit_count(lease.done & result.mask::varbit) = 0
returning lease.id, bit_count(lease.done) = bit_length(lease.done) as is_over,
          case when bit_count(lease.cancel & result.mask::varbit) > 0 then (lease.cancel & result.mask::varbit)::text end as cancelled,
          (select true from dependency
           where dependency.lane = :lane::smallint and dependency.parent_id between :first::uuid and :last::uuid
           order by dependency.parent_id, dependency.child_id limit 1) as has_children
