-- Forget entries of runs of one lane that were dropped.
-- Index: backlog_entry primary key.
delete from backlog_entry
where backlog_entry.lane = :lane::smallint and backlog_entry.gate = :gate::text
  and backlog_entry.place = any (:places::bigint[]) and backlog_entry.run_id = any (:runs::uuid[])
