-- Let runs wait for others that were made in this very transaction.
-- Moves: submit.  See the function.
select hold_new_runs(:lane::smallint, :runs::uuid[])
