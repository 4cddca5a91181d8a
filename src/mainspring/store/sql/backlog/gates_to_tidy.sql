-- Gates of one lane that are to be looked at: those whose time has come, and those with entries that nobody has counted.
-- Index: backlog_gate_tidy_idx, backlog_addition primary key.
(select backlog_gate.gate from backlog_gate
 where backlog_gate.lane = :lane::smallint and backlog_gate.tidy_at <= clock_now()
 order by backlog_gate.tidy_at limit :count::int)
union
(select backlog_addition.gate from backlog_addition
 where backlog_addition.lane = :lane::smallint order by backlog_addition.gate limit :count::int)
