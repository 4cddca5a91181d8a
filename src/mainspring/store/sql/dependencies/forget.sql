-- Forget for which runs of one lane some others waited: they wait no more. Found child by child in the order of the index, and
-- deleted by key: with `= any` alone, planned while the table was empty, it could read the whole lane for ever.
-- Index: dependency_child_idx.
delete from dependency
where dependency.lane = :lane::smallint and dependency.child_id = any (:children::uuid[])
  and dependency.parent_id = any (array(
      select waited_for.parent_id
      from unnest(:children::uuid[]) as child (id) cross join lateral (
          select dependency.parent_id from dependency
          where dependency.lane = :lane::smallint and dependency.child_id = child.id
          order by dependency.child_id for update skip locked) as waited_for))   -- the rest goes when its parent ends
