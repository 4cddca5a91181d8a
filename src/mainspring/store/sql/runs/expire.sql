-- End waiting runs that were not started in time; answers how many.
-- Moves: expire.  Index: ready_expiry_idx, later_expiry_idx, held_expiry_idx.  See the function.
select expire_runs(:lane::smallint, :count::int)
