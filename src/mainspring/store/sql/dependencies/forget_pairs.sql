-- Forget that some runs waited for others of one lane: `parents` and `children` are pairs, looked up in a hash (`is true`
-- keeps it one).
-- Index: dependency primary key.
delete from dependency
where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
  and ((dependency.parent_id, dependency.child_id) in (
      select told.parent_id, told.child_id
      from unnest(:parents::uuid[], :children::uuid[]) as told (parent_id, child_id))) is true
