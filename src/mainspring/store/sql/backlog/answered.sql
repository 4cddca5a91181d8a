-- Whether an earlier run answers a submission under a key, as far as can be seen without a lock.
-- Index: primary keys.
select exists (select from idempotency
               where idempotency.lane = :lane::smallint and idempotency.tenant_id = :tenant::int
                 and idempotency.key = :key::text)
    or exists (select from unique_key
               where unique_key.lane = :lane::smallint and unique_key.tenant_id = :tenant::int
                 and unique_key.job_id = :job::int and unique_key.key = :unique_key::text
                 and (:holds_by_time::boolean
                      or state_of_holder(:lane::smallint, unique_key.run_id) in ('waiting', 'running'))) as is_answered
