-- Set settled runs aside until their reason is gone; at a gate, if they have some to pass. No attempt is spent.
-- Moves: hold.  Index: lease primary key.
insert into held (lane, {run}, reason, gates, gate, turn)
select lease.lane, {run of run}, back.reason, back.gates, split_part(back.gates, E'\n', 1),
       case when back.gates is not null
            -- If it kept its slot of that gate, it comes before all others.
            then coalesce((select 0::bigint from slot
                         where slot.lane = :lane::smallint and slot.run_id = run.id
                           and slot.gate is not distinct from split_part(back.gates, E'\n', 1) limit 1),
                        -- Where order is strict behind an open circuit breaker, it is so before it.
                        turn_of(case when back.reason = 'breaker' and back.gates ~ E'\n[0-9]+!' then '!'
                                     else split_part(back.gates, E'\n', 1) end, run.priority, run.submitted_at)) end
from lease
cross join lateral unnest(lease.runs) with ordinality as run
join unnest(:leases::uuid[], :positions::int[], :reasons::text[], :gates::text[]) as back (lease, position, reason, gates)
    on back.lease = lease.id and back.position = run.ordinality
where lease.lane = :lane::smallint and lease.id = any (:leases::uuid[])
