-- Forget the children of runs of one lane that are over. Found run by run in the order of the index, and deleted by key: see
-- dependencies/forget.
-- Index: dependency_child_idx.
delete from dependency
where dependency.lane = :lane::smallint and dependency.child_id = any (:runs::uuid[]) and dependency.otherwise = 'fail'
  and dependency.parent_id = any (array(
      select child.parent_id
      from unnest(:runs::uuid[]) as run (id) cross join lateral (
          select dependency.parent_id from dependency
          where dependency.lane = :lane::smallint and dependency.child_id = run.id
          order by dependency.child_id) as child))
