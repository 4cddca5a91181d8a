-- The children of runs of one lane, by their names. Each between its id and the next one, which any collation puts in order.
-- Index: idempotency primary key.
select run.id as run_id, child.key, child.run_id as child_id
from unnest(:runs::uuid[], :first::text[], :last::text[]) as run (id, first, last) cross join lateral (
    select idempotency.key, idempotency.run_id from idempotency
    where idempotency.lane = :lane::smallint and idempotency.tenant_id = :tenant::int
      and idempotency.key >= run.first and idempotency.key < run.last and starts_with(idempotency.key, run.first)
    order by idempotency.key) as child
