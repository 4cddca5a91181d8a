-- A run that is over waits no more for these of its children.
-- Index: dependency primary key.
delete from dependency
where dependency.lane = :lane::smallint and dependency.parent_id = any (:children::uuid[])
  and dependency.child_id = :run::uuid and dependency.otherwise = 'fail'
