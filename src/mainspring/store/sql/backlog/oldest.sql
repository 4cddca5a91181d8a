-- The entries of a gate in one lane that were accepted first.
-- Index: backlog_entry primary key.
select backlog_entry.place, backlog_entry.run_id from backlog_entry
where backlog_entry.lane = :lane::smallint and backlog_entry.gate = :gate::text
order by backlog_entry.gate, backlog_entry.place, backlog_entry.run_id limit :count::int
