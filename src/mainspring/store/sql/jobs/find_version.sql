-- The version of a job that has this definition, if it has one.
select job.id as job_id, job_version.version
from job left join job_version on job_version.job_id = job.id and job_version.digest = :digest::bytea
where job.tenant_id = :tenant::int and job.name = :name::text
