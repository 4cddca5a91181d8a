-- Accept runs of one lane, for now or for later, each under its key if it has one.
-- Moves: submit, change.  Hot.  Index: primary keys.  See the function.
select ordinal, run_id, verdict
from submit_runs(:lane::smallint, :items::text::jsonb, :known::text::jsonb, :key_wait::text)
