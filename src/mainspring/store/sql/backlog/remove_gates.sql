-- Remove gates of one lane that have no entries any more. Whoever calls has locked them.
-- Index: backlog_gate primary key.
delete from backlog_gate where backlog_gate.lane = :lane::smallint and backlog_gate.gate = any (:gates::text[])
