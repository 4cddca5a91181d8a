-- The run that was accepted last under a unique key.
-- Index: primary key.
select run_id from unique_key
where lane = :lane::smallint and tenant_id = :tenant::int and job_id = :job::int and key = :key::text
