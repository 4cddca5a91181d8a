-- A worker says how many results it has not settled, and for how long it has tried in vain (null: it can settle).
-- Index: the primary key.
update worker_heartbeat
set unsettled = :unsettled::int,
    unsettled_since = clock_now() - :failing_seconds::double precision * interval '1 second'
where lane = :lane::smallint and worker_id = :worker::uuid
