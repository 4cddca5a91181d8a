-- All chains of a tenant.
select upstream, downstream, condition, argument, is_paused, changed_at, changed_by, reason
from chain where tenant_id = :tenant::int order by upstream, downstream
