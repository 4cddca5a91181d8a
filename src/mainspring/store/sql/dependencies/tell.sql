-- Runs of one lane have become dead letters: note it for those that wait for them.
-- See the function.
select tell_children(:lane::smallint, :runs::uuid[])
