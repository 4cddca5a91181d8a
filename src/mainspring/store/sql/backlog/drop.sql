-- Cancel runs of one lane that wait for their first start, to make room for others.
-- Moves: cancel.  See the function.
select dropped as id
from drop_waiting_runs(:lane::smallint, :runs::uuid[], :tenant::int, :actor::text, :reason::text, :detail::jsonb) as dropped
