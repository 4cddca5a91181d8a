-- Give a tenant another weight. Answers with nothing if there is no such tenant.
with changed as (
    update tenant set weight = :weight::int, changed_at = clock_now(), changed_by = :actor::text, reason = :reason::text
    where name = :name::text
    returning name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'tenant.weight', changed.name, :detail::jsonb from changed
)
select name from changed
