-- The names behind job ids of a tenant.
select id, name from job where tenant_id = :tenant::int and id = any (:jobs::int[])
