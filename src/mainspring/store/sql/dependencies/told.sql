-- Those know by now that runs of one lane have ended which wait for them, and wait on. What ended as it should have is
-- forgotten, unless its result becomes an argument; what did not, they go on waiting for.
-- `pairs` are parent and child, one after the other: rows are found by the key, and no others are meant.
-- Index: dependency primary key.
with forgotten as (
    delete from dependency
    where dependency.lane = :lane::smallint and dependency.parent_id = any (:met::uuid[])
      and dependency.parent_id::text || dependency.child_id::text = any (:pairs::text[]) and dependency.inputs is null
)
update dependency
set is_news = false, has_ended = dependency.parent_id = any (:met::uuid[]),
    checks = 0,
    check_at = case when dependency.parent_id <> all (:met::uuid[]) then clock_now() + interval '2 seconds' end
where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
  and dependency.parent_id::text || dependency.child_id::text = any (:pairs::text[])
  and (dependency.inputs is not null or dependency.parent_id <> all (:met::uuid[]))
