-- Some runs wait no more for runs of one lane that others stand for now.
-- Index: dependency primary key.
delete from dependency
where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
  and dependency.child_id = any (:children::uuid[])
