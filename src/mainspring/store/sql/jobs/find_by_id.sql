-- A job by its number: its newest definition.
-- Index: primary keys.
select job.name, job.version, job_version.definition::text as definition   -- a driver of somebody else might read jsonb
from job join job_version on job_version.job_id = job.id and job_version.version = job.version
where job.id = :job::int and job.tenant_id = :tenant::int
