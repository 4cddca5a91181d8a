-- Let a worker send no heartbeat in its home lane until we let go.  Index: the primary key.
select from worker_heartbeat where lane = :lane::smallint and worker_id = :worker::uuid for update
