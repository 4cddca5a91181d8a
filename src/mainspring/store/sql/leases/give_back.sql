-- Put settled runs back in line at once, at the rank they had time to earn: the front. No attempt is spent.
-- Moves: give_back.  Index: lease primary key.
insert into ready (lane, {run except expires_at, first_started_at}, expires_at, first_started_at, rank, gates)
select lease.lane, {run of run except expires_at, first_started_at},
       case when back.started_at is null then run.expires_at else run.retry_until end,
       coalesce(run.first_started_at, back.started_at), (date_part('epoch', run.ready_at) * 1000000)::bigint,
       case when back.has_gates then
       (select string_agg(slot.gate, E'\n' order by slot.place) from slot
        where slot.lane = :lane::smallint and slot.run_id = run.id) end
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :starts::timestamptz[], :have_gates::boolean[])
    as back (lease, position, started_at, has_gates)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
