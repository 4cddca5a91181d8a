-- Runs of one lane whose children have all ended: they have succeeded, or are dead letters because of a child.
-- Moves: join, fail.  See the function.
select run_id, state from join_children(:lane::smallint, :succeeded::uuid[], :failed::uuid[], :errors::jsonb[])
