-- All circuit breakers of a tenant.
-- Index: breaker primary key.
select id, job, key, failures, within_seconds, failure_ratio, probe_after, max_probe_after,
       declared::text as declared, changed_at, changed_by, reason
from breaker where tenant_id = :tenant::int order by job
