-- Move an operation past the batch that was worked off in this transaction.
update operation
set cursor = :cursor::text, done = operation.done + :done::bigint, skipped = operation.skipped + :skipped::bigint,
    worked_at = clock_now(), ended_at = clock_now() + case when :is_over::bool then interval '0' end   -- or null
where tenant_id = :tenant::int and id = :id::uuid
