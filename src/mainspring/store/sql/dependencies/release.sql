-- Let runs of one lane go on that were held until others had ended.
-- Moves: release.  See the function.
select run_id, line_id, priority, gate, is_due
from release_children(:lane::smallint, :runs::uuid[], :payloads::bytea[])
