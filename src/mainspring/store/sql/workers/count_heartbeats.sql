-- How often a worker has beaten, in all its lanes.  Index: the primary key.
select coalesce(sum(beat), 0)::bigint from worker_heartbeat
where lane = any (:lanes::smallint[]) and worker_id = :worker::uuid
