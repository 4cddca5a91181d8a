-- These gates of one lane were looked at: again in a minute.
-- Index: backlog_gate primary key.
update backlog_gate set tidy_at = clock_now() + interval '1 minute'
where backlog_gate.lane = :lane::smallint and backlog_gate.gate = any (:gates::text[])
