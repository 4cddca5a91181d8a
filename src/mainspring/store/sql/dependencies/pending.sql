-- Which of some runs wait for others of one lane that have not ended.
-- Index: dependency_pending_idx.
select child.id
from unnest(:children::uuid[]) as child (id)
where (select true from dependency
       where dependency.lane = :lane::smallint and dependency.child_id = child.id
         and not dependency.has_ended and not dependency.is_news and dependency.otherwise <> 'fail'
       order by dependency.child_id limit 1)
