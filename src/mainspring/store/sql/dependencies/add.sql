-- Let new runs wait for runs of one lane; answers with those that are unknown.
-- See the function.
select add_dependencies as run_id from add_dependencies(:lane::smallint, :tenant::int, :items::text::jsonb)
