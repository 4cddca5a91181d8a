-- All backlog caps of a tenant, as those need them who submit.
select id, scope, name, key from backlog_cap where tenant_id = :tenant::int
