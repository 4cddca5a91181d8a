-- Remove a locked schedule. Its versions, its ledger and its runs stay.
-- Index: schedule_pkey.
delete from schedule where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
