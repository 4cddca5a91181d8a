-- A worker says what it has done for its lines so far, while it lives: what one says that was declared lost would be
-- counted twice, once its tally has become part of the sum.
insert into tally (worker_id, line_id, finished, busy_seconds, holding)
select :worker::uuid, told.*
from unnest(:lines::int[], :finished::bigint[], :busy_seconds::double precision[], :holdings::int[]) as told
where exists (select from worker where worker.id = :worker::uuid and worker.state = 'live')
on conflict (worker_id, line_id) do update
set finished = excluded.finished, busy_seconds = excluded.busy_seconds, holding = excluded.holding
