-- One run, wherever it lives, with what it carries. A run that has ended is not here but in history.
-- Index: primary keys; lease through `ids`, which is small, and only then the one lease's `runs`.
select 'scheduled'::run_state as state, {run except overrides}, overrides::text, null::timestamptz as ready_at,
       null::timestamptz as claimed_at, null::uuid as worker_id, null::text as reason, false as is_cancelling,
       null::timestamptz as since
from later where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'held', {run except overrides}, overrides::text, null, null, null, reason, false, held_at
from held where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select case when rank > rank_bound() then 'scheduled' else 'ready' end::run_state, {run except overrides}, overrides::text,
       ready_at, null, null, null, false, ready_at
from ready where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'dead', {run except overrides}, overrides::text, null, null, null, null, false, died_at
from dead where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
union all
select 'running', {run of run except overrides}, run.overrides::text, run.ready_at, holder.claimed_at,
       holder.worker_id, null, get_bit(holder.cancel, run.ordinality::int - 1) = 1, holder.claimed_at
from (
    select * from lease
    where lease.lane = :lane::smallint and lease.ids @> array[:run::uuid]
      and get_bit(lease.done, array_position(lease.ids, :run::uuid) - 1) = 0
    offset 0   -- keeps the planner from taking `runs` apart before it knows that this is the lease
) as holder
cross join lateral unnest(holder.runs) with ordinality as run
where run.id = :run::uuid and run.tenant_id = :tenant::int
