-- Set a backlog cap: a new one with the next number, or another value for the one that there is.
with written as (
    insert into backlog_cap (id, tenant_id, scope, name, key, most, when_full, declared, changed_by, reason)
    values (:id::int, :tenant::int, :scope::text, :name::text, :key::text, :most::int, :when_full::text, :declared::jsonb,
            :actor::text, :reason::text)
    on conflict (tenant_id, scope, name, key) do update
    set most = excluded.most, when_full = excluded.when_full, declared = excluded.declared,
        changed_at = excluded.changed_at, changed_by = excluded.changed_by, reason = excluded.reason
    returning id
)
insert into audit (lane, tenant_id, actor, action, subject, detail)
select 0, :tenant::int, :actor::text, 'backlog.set', :subject::text, :detail::jsonb from written
