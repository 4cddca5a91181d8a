-- Entries of some gates of one lane were removed: count them no more. `are_checked`: all that are left wait.
-- Index: backlog_gate primary key.
update backlog_gate
set counted = backlog_gate.counted - gone.count,
    checked = case when :are_checked::boolean then backlog_gate.counted - gone.count else backlog_gate.checked end
from unnest(:gates::text[], :counts::int[]) as gone (gate, count)
where backlog_gate.lane = :lane::smallint and backlog_gate.gate = gone.gate
