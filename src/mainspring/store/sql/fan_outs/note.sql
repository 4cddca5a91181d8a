-- Note what became of children of one lane: those in `over` are forgotten, those in `kept` have not ended as they should
-- have, which counts once all have ended, and those in `open` go on. `pairs` are parent and child, one after the other: rows
-- are found by the key, and no others are meant. The row by which a run waits for its own handler is never looked after.
-- Index: dependency primary key.
with forgotten as (
    delete from dependency
    where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
      and dependency.parent_id::text || dependency.child_id::text = any (:over::text[])
)
update dependency
set is_news = false,
    has_ended = dependency.parent_id::text || dependency.child_id::text = any (:kept::text[]),
    checks = 0,
    check_at = case when dependency.parent_id <> dependency.child_id
                     and dependency.parent_id::text || dependency.child_id::text <> all (:kept::text[])
                    then clock_now() + interval '2 seconds' end
where dependency.lane = :lane::smallint and dependency.parent_id = any (:parents::uuid[])
  and dependency.parent_id::text || dependency.child_id::text = any (:kept::text[] || :open::text[])
