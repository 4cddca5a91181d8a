-- End waiting runs at once, wherever they wait.
-- Moves: cancel.  Index: primary keys.  See the function.
select id
from cancel_runs(:lane::smallint, :runs::uuid[], :tenant::int, :actor::text, :reason::text, :detail::jsonb) as ended (id)
