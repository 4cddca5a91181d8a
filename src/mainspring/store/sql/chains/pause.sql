-- Pause a chain, or let it go on. No row: there was none.
with changed as (
    update chain
    set is_paused = :is_paused::boolean, changed_at = clock_now(), changed_by = :actor::text, reason = :reason::text
    where tenant_id = :tenant::int and upstream = :upstream::text and downstream = :downstream::text
    returning upstream
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, case when :is_paused::boolean then 'chain.pause' else 'chain.resume' end,
           :subject::text, :detail::jsonb
    from changed
)
select upstream from changed
