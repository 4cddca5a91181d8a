-- For which of some values the breaker of a job is open, and whether it is for the whole job; and for how many values it is.
-- Index: breaker_opening primary key.
select array(select value from breaker_opening
             where tenant_id = :tenant::int and job = :job::text and value = any (:key_values::text[])) as open,
       exists (select from breaker_opening
               where tenant_id = :tenant::int and job = :job::text and value = '') as is_whole,
       (select count(*) from breaker_opening where tenant_id = :tenant::int and job = :job::text) as open_values
