-- Change waiting runs wherever they wait, if they are still as the caller saw them.
-- Moves: change.  Index: primary keys.  See the function.
select id, line_id, priority, revision, state
from change_runs(:lane::smallint, :runs::uuid[], :tenant::int, :revision::int, :present_line::int, :line::int,
                 :priority::smallint, :due_at::timestamptz, :max_age::double precision, :codec::smallint,
                 :payload::bytea, :tags::text[], :actor::text, :detail::jsonb)
