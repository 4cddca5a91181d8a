-- Remove the circuit breaker of a job. No row: there was none.
with removed as (
    delete from breaker where tenant_id = :tenant::int and job = :job::text returning id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'breaker.remove', :subject::text, :detail::jsonb from removed
)
select id from removed
