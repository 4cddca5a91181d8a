-- End dead letters for good, each once. Their payload stays with history, as with every run that ended.
-- Moves: purge.  Index: primary key.  See the function.
select id
from purge_runs(:lane::smallint, :runs::uuid[], :tenant::int, :actor::text, :reason::text, :detail::jsonb) as ended (id)
