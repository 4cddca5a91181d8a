-- A worker says what it has done for its lines so far.
insert into tally (worker_id, line_id, finished, busy_seconds, holding)
select :worker::uuid, * from unnest(:lines::int[], :finished::bigint[], :busy_seconds::double precision[], :holdings::int[])
on conflict (worker_id, line_id) do update
set finished = excluded.finished, busy_seconds = excluded.busy_seconds, holding = excluded.holding
