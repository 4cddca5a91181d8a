-- Handlers of runs of one lane have returned: those that have children wait for them from now on. Answers which do.
-- Index: dependency primary key.
update dependency set is_news = true
where dependency.lane = :lane::smallint and dependency.parent_id = any (:runs::uuid[])
  and dependency.child_id = dependency.parent_id and dependency.otherwise = 'fail'
returning dependency.child_id as id
