-- These children of a run of one lane are not known by their names any more. Found between the id of the run and the next one,
-- as in `children`.
-- Index: idempotency primary key.
delete from idempotency
where idempotency.lane = :lane::smallint and idempotency.tenant_id = :tenant::int
  and idempotency.key >= :first::text and idempotency.key < :last::text and starts_with(idempotency.key, :first::text)
  and idempotency.run_id = any (:children::uuid[])
