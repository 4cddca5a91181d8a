-- Children of some runs of one lane that did not end as they should have, when they were looked at.
-- Index: dependency_child_idx.
select child.parent_id, child.child_id, child.condition, child.is_lost
from unnest(:runs::uuid[]) as run (id) cross join lateral (
    select dependency.parent_id, dependency.child_id, dependency.condition, dependency.is_lost
    from dependency
    where dependency.lane = :lane::smallint and dependency.child_id = run.id and dependency.parent_id <> dependency.child_id
      and dependency.otherwise = 'fail'
    order by dependency.child_id) as child
