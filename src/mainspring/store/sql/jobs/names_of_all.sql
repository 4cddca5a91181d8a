-- Whose these jobs are, and their names: for workers, who serve all tenants.
-- Index: the primary key.
select id, tenant_id, name from job where id = any (:jobs::int[])
