-- All circuit breakers of a tenant, or of all tenants.
-- Index: breaker primary key.
select id, tenant_id, job, key, failures, within_seconds, failure_ratio, probe_after, max_probe_after,
       declared::text as declared, changed_at, changed_by, reason
from breaker where tenant_id = coalesce(:tenant::int, tenant_id) order by tenant_id, job
