-- As jobs/register, with a number of our own: a worker node of a Citus cluster cannot ask the sequence for one.
with named as (
    insert into job (id, tenant_id, name, version) values (:number::int, :tenant::int, :name::text, 1)
    on conflict (tenant_id, name) do nothing
    returning id, version
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'job.create', :name::text, :definition::jsonb from named
)
insert into job_version (job_id, version, digest, definition)
select named.id, 1, :digest::bytea, :definition::jsonb from named
returning job_id, version
