-- All backlog caps of a tenant, as people see them.
select id, scope, name, key, most, when_full, declared::text as declared, changed_at, changed_by, reason
from backlog_cap where tenant_id = :tenant::int order by scope, name, key
