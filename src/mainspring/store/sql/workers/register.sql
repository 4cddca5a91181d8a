-- A worker process begins to live.
insert into worker (id, host, pid, queues, labels, handlers, slots, lease_seconds, version,
                    waits_for_rank, knows)
values (:worker::uuid, :host::text, :pid::int, :queues::text[], :labels::text[], :handlers::text[], :slots::int,
        :lease_seconds::double precision, :version::text, true, :knows::int)
on conflict (id) do nothing
