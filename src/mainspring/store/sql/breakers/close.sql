-- Close a breaker where it is open: whoever waits there goes on. No row: somebody did so before.
-- Index: openings_have_numbers.
with closed as (
    delete from breaker_opening where tenant_id = :tenant::int and id = :id::int returning value, opened_at
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'breaker.close', :subject::text,
           :detail::jsonb || jsonb_build_object('value', closed.value, 'opened_at', closed.opened_at)
    from closed
)
select value from closed
