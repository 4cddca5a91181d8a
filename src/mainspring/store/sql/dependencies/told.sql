-- Those know by now that runs of one lane have ended which wait for them, and wait on: for the others if these have ended as
-- they should have, else for the same ones. `parents` and `children` are pairs, looked up in a hash (`is true` keeps it one).
-- Index: dependency primary key.
update dependency
set is_news = false, has_ended = :have_ended::boolean, checks = 0,
    check_at = case when not :have_ended::boolean then clock_now() + interval '2 seconds' end
where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
  and ((dependency.parent_id, dependency.child_id) in (
      select told.parent_id, told.child_id
      from unnest(:parents::uuid[], :children::uuid[]) as told (parent_id, child_id))) is true
