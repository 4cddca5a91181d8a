-- Where a worker that begins to live counts its heartbeats.  Index: the primary key.
insert into worker_heartbeat (lane, worker_id) values (:lane::smallint, :worker::uuid)
on conflict (lane, worker_id) do nothing
