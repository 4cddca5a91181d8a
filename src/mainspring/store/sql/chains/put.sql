-- Let runs of one job be submitted after those of another one. One that is paused stays so.
with written as (
    insert into chain (tenant_id, upstream, downstream, condition, argument, changed_by)
    values (:tenant::int, :upstream::text, :downstream::text, :condition::text, :argument::text, :actor::text)
    on conflict (tenant_id, upstream, downstream) do update
    set condition = excluded.condition, argument = excluded.argument, changed_at = excluded.changed_at,
        changed_by = excluded.changed_by
    returning upstream
)
insert into audit (lane, tenant_id, actor, action, subject, detail)
select 0, :tenant::int, :actor::text, 'chain.declare', :subject::text, :detail::jsonb from written
