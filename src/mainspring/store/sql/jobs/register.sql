-- Make sure a job exists, and that this definition is one of its versions; answers with its id and that version.
with named as (
    insert into job (tenant_id, name, version) values (:tenant::int, :name::text, 1)
    on conflict (tenant_id, name) do nothing
    returning id, version
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'job.create', :name::text, :definition::jsonb from named
)
insert into job_version (job_id, version, digest, definition)
select named.id, 1, :digest::bytea, :definition::jsonb from named
returning job_id, version
