-- All limits of a tenant, or of all tenants, as those need them who apply them.
select id, tenant_id, scope, name, key, most, rate, burst, is_strict, halts_on_dead, is_spread, share
from limit_rule where tenant_id = coalesce(:tenant::int, tenant_id)
