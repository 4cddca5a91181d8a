-- One more heartbeat of a scheduler; its row is made if it is not there.
-- Index: the primary key.
insert into scheduler (id, host, pid, version)
values (:id::uuid, :host::text, :pid::int, :version::text)
on conflict (id) do update set beat = scheduler.beat + 1, beat_at = excluded.beat_at
