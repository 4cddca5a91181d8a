-- After runs of which jobs others are submitted: of a tenant, or of all tenants.
select distinct tenant_id, upstream from chain where tenant_id = coalesce(:tenant::int, tenant_id)
