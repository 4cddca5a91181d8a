-- Somebody looks through a gate of one lane now; again in a minute. No row: somebody else does, or did just now.
-- Index: backlog_gate primary key.
update backlog_gate set tidy_at = clock_now() + interval '1 minute'
where backlog_gate.lane = :lane::smallint and backlog_gate.gate = :gate::text and backlog_gate.tidy_at <= clock_now()
returning backlog_gate.gate
