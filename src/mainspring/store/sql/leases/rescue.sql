-- Take every unfinished run out of some leases of a lost worker: back in line, among the dead letters, or to its end.
-- Moves: rescue, bury, lose, cancel.  Index: lease_worker_idx.  See the function.
select leases, rescued, cancelled, lost, buried, bad_ends
from rescue_leases(:lane::smallint, :worker::uuid, :count::int, :most_crashes::int)
