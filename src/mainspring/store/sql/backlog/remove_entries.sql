-- Remove all entries of gates whose cap is gone, in one lane.
-- Index: backlog_entry primary key.
delete from backlog_entry
where backlog_entry.lane = :lane::smallint and backlog_entry.gate = any (:gates::text[])
