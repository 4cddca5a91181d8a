-- Which of some runs of one lane have children that have not ended, or of whose end nobody has taken note; or a handler that
-- has not returned.
-- Index: dependency_child_idx.
select run.id
from unnest(:runs::uuid[]) as run (id)
where (select true from dependency
       where dependency.lane = :lane::smallint and dependency.child_id = run.id and dependency.otherwise = 'fail'
         and not dependency.has_ended
       order by dependency.child_id limit 1)
