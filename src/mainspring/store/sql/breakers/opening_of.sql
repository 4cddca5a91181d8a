-- The number of a breaker that is open for a value, and whether it is; and for how many values it is open.
-- Index: breaker_opening primary key.
select (select id from breaker_opening
        where tenant_id = :tenant::int and job = :job::text and value = :value::text) as id,
       (select count(*) from breaker_opening where tenant_id = :tenant::int and job = :job::text) as open_values
