-- End runs of one lane, because those that they were held for ended otherwise than they should have.
-- Moves: cancel.  See the function.
select cancel_children as id from cancel_children(:lane::smallint, :runs::uuid[], :errors::jsonb[])
