-- A worker process begins to live. Older rescuers judge by the lease time of this row, and see no heartbeats: it has no end.
insert into worker (id, host, pid, queues, labels, handlers, slots, lease_seconds, lost_after, version, waits_for_rank,
                    knows)
values (:worker::uuid, :host::text, :pid::int, :queues::text[], :labels::text[], :handlers::text[], :slots::int,
        1e9, :lease_seconds::double precision, :version::text, true, :knows::int)
on conflict (id) do nothing
