-- The entries of a gate in one lane that were accepted last.
-- Index: backlog_entry primary key.
select backlog_entry.place, backlog_entry.run_id from backlog_entry
where backlog_entry.lane = :lane::smallint and backlog_entry.gate = :gate::text
order by backlog_entry.gate desc, backlog_entry.place desc, backlog_entry.run_id desc limit :count::int
