-- The runs of one lease, as its claim returned them: for a claim whose answer was lost.
-- Index: lease primary key.
select {claimed}
from (
    select {claimed of run except rank, special}, 0::bigint as rank,
           special_of(run.crashes, run.first_started_at, run.overrides, 
               (select string_agg(slot.gate, E'\n' order by slot.place) from slot
                where slot.lane = :lane::smallint and slot.run_id = run.id)) as special
    from lease cross join lateral unnest(lease.runs) as run
    where lease.lane = :lane::smallint and lease.id = :lease::uuid and lease.worker_id = :worker::uuid
) as found
