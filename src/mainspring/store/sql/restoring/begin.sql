-- Note that this database was restored from a backup, and give it an id of its own: what programs remember of the database
-- that was backed up (the numbers of jobs, for instance) need not be true of this one.
with installation as (
    insert into setting (name, value) values ('installation', gen_random_uuid()::text)
    on conflict (name) do update set value = excluded.value
    returning value
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'restore.start', value, jsonb_build_object('reason', :reason::text)
    from installation
)
select value as id, extract(epoch from clock_now())::bigint as now from installation
