-- All that has to happen when runs end, besides their row of history.
-- See the function.
select end_runs(:lane::smallint, :runs::uuid[])
