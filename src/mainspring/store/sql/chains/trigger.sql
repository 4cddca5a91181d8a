-- Submit runs after others of one lane that have ended.
-- Moves: submit.  See the function.
select trigger_runs as id
from trigger_runs(:lane::smallint, :runs::uuid[], :news::text[], :items::text::jsonb, :refusals::text::jsonb)
