-- Put dead letters back in line, each once. A null parameter leaves its attribute.
-- Moves: requeue.  Index: primary keys.  See the function.
select id, line_id, priority
from requeue_runs(:lane::smallint, :runs::uuid[], :tenant::int, :codec::smallint, :payload::bytea,
                  :max_age::double precision, :actor::text, :detail::jsonb)
