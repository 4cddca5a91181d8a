-- Forget for which runs of one lane some others waited: they wait no more. Found child by child in the order of the index, and
-- deleted by key: with `= any` alone, planned while the table was empty, it could read the whole lane for ever. Which rows
-- are meant is looked up in a hash (`is true` keeps it one): there may be ten thousand.
-- Index: dependency_child_idx, dependency primary key.
delete from dependency
where dependency.lane = :lane::smallint and dependency.otherwise <> 'fail'
  and dependency.parent_id = any (array(
      select waited_for.parent_id
      from unnest(:children::uuid[]) as child (id) cross join lateral (
          select dependency.parent_id from dependency
          where dependency.lane = :lane::smallint and dependency.child_id = child.id
          order by dependency.child_id) as waited_for))
  and ((dependency.parent_id, dependency.child_id) in (
      select waited_for.parent_id, waited_for.child_id
      from unnest(:children::uuid[]) as child (id) cross join lateral (
          select dependency.parent_id, dependency.child_id from dependency
          where dependency.lane = :lane::smallint and dependency.child_id = child.id
          order by dependency.child_id for update skip locked) as waited_for)) is true   -- the rest goes when its parent ends
