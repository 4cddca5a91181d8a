-- Children of a run of one lane that is over, the first few: those of whose end it was not told; and whose run it was.
-- Index: dependency_child_idx; attempt_run_idx, in the partitions since the run was made.
select dependency.parent_id as id, (
    select attempt.tenant_id from attempt
    where attempt.lane = :lane::smallint and attempt.run_id = :run::uuid and attempt.recorded_at >= :since::timestamptz
    limit 1) as tenant_id
from dependency
where dependency.lane = :lane::smallint and dependency.child_id = :run::uuid and dependency.otherwise = 'fail'
  and dependency.parent_id <> dependency.child_id and not dependency.has_ended
order by dependency.child_id limit :count::int
