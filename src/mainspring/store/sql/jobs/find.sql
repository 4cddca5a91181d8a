-- One job by name, with its newest definition.
select job.id, job.name, job.version, job_version.definition
from job join job_version on job_version.job_id = job.id and job_version.version = job.version
where job.tenant_id = :tenant::int and job.name = :name::text
