-- Remove a chain. No row: there was none.
with removed as (
    delete from chain where tenant_id = :tenant::int and upstream = :upstream::text and downstream = :downstream::text
    returning upstream
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'chain.remove', :subject::text, :detail::jsonb from removed
)
select upstream from removed
