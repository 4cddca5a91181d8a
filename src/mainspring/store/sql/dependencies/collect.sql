-- Keep the results of several runs of one lane that a run waited for in the row of the first of them.
-- Index: dependency primary key.
update dependency
set is_news = false, has_ended = true, checks = 0, check_at = null, inputs = collected.inputs, results = collected.results
from unnest(:firsts::uuid[], :children::uuid[], :inputs::text[]::jsonb[], :results::bytea[])
         as collected (parent_id, child_id, inputs, results)
where dependency.lane = :lane::smallint and dependency.parent_id = any (:firsts::uuid[])
  and dependency.parent_id = collected.parent_id and dependency.child_id = collected.child_id
