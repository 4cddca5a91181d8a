-- The jobs of a tenant, by id.
select id, name, version from job where tenant_id = :tenant::int order by id limit :count::int
