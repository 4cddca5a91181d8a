-- Take one operation for the next batch, if it still is where the caller saw it; whoever else works on it waits.
select id from operation
where tenant_id = :tenant::int and id = :id::uuid and cursor is not distinct from :cursor::text and ended_at is null
for update
