-- Write down what is to be done to many runs, before any of it is.
with started as (
    insert into operation (id, tenant_id, kind, filter, change, actor, reason, expected)
    values (:id::uuid, :tenant::int, :kind::text, :filter::jsonb, :change::jsonb, :actor::text, :reason::text,
            :expected::bigint)
    returning id, tenant_id, kind
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, started.tenant_id, :actor::text, 'operation.start', started.id::text,
           jsonb_build_object('kind', started.kind, 'filter', :filter::jsonb, 'change', :change::jsonb,
                              'reason', :reason::text)
    from started
)
select id from started
