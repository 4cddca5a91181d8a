-- All backlog caps of a tenant, or of all tenants, as those need them who submit.
select id, tenant_id, scope, name, key from backlog_cap where tenant_id = coalesce(:tenant::int, tenant_id)
