-- Remove a backlog cap. No row: there was none.
with removed as (
    delete from backlog_cap
    where tenant_id = :tenant::int and scope = :scope::text and name = :name::text and key = :key::text
    returning id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'backlog.remove', :subject::text, :detail::jsonb from removed
)
select id from removed
