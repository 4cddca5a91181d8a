-- One more heartbeat of a scheduler, in its home lane; its row is made if it is not there.
-- Index: the primary key.
insert into scheduler_heartbeat (lane, id, host, pid, version)
values (:lane::smallint, :id::uuid, :host::text, :pid::int, :version::text)
on conflict (lane, id) do update set beat = scheduler_heartbeat.beat + 1, beat_at = excluded.beat_at
