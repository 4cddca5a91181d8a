-- Log lines of one run, in the order they were written, after a given part of a given attempt.
-- Index: log_run_idx, in the partitions since the run was made.
select distinct on (fence, part) fence, attempt, part, lines
from log
where lane = :lane::smallint and run_id = :run::uuid and recorded_at >= :since::timestamptz
  and (fence, part) > (:fence::int, :part::int)
order by fence, part
