-- All limits of a tenant, as people see them.
select id, scope, name, key, most, rate, burst, is_strict, halts_on_dead, is_spread, share, declared::text as declared, changed_at,
       changed_by, reason
from limit_rule where tenant_id = :tenant::int order by scope, name, key
