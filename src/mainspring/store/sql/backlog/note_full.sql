-- A large backlog was found full: for a while, which grows with what it takes, not all its entries are looked at again.
-- Index: backlog_gate primary key.
update backlog_gate set full_until = clock_now() + :seconds::double precision * interval '1 second'
where backlog_gate.lane = :lane::smallint and backlog_gate.gate = :gate::text
