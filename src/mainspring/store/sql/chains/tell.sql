-- Runs of one lane have become dead letters: note it where others are submitted after them.
-- See the function.
select tell_chains(:lane::smallint, :runs::uuid[])
