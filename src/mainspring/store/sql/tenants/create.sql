-- Make a tenant. Answers with nothing if its name is taken.
with made as (
    insert into tenant (id, name, weight, changed_by, reason)
    values (:id::int, :name::text, :weight::int, :actor::text, :reason::text)
    on conflict (name) do nothing
    returning name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'tenant.create', made.name, :detail::jsonb from made
)
select name from made
