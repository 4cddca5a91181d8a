-- In which state some runs of one lane are now.
-- Index: primary keys, attempt_run_idx; lease through `ids`, which is small, and only then the `runs` of those leases.
select 'scheduled'::run_state as state, id from later
where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
union all
select 'held', id from held
where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
union all
select case when rank > rank_bound() then 'scheduled' else 'ready' end::run_state, id from ready
where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
union all
select 'dead', id from dead
where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
union all
select 'running', run.id
from (
    select * from lease where lease.lane = :lane::smallint and lease.ids && :runs::uuid[] offset 0   -- see runs/find
) as holder
cross join lateral unnest(holder.runs) with ordinality as run
where run.id = any (:runs::uuid[]) and run.tenant_id = :tenant::int and get_bit(holder.done, run.ordinality::int - 1) = 0
union all
select state, run_id from attempt
where lane = :lane::smallint and run_id = any (:runs::uuid[]) and recorded_at >= :since::timestamptz
  and tenant_id = :tenant::int and state in ({ends})
