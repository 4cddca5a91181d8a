-- A changed definition is the next version. The row lock on the job lets two deploys take turns.
with newest as (
    update job set version = version + 1 where id = :job::int and tenant_id = :tenant::int
    returning id, version, name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'job.change', newest.name, :definition::jsonb from newest
)
insert into job_version (job_id, version, digest, definition)
select newest.id, newest.version, :digest::bytea, :definition::jsonb from newest
returning job_id, version
