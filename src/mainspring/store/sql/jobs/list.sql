-- Jobs by name, with their newest definitions.
select job.id, job.name, job.version, job.created_at, job_version.created_at as changed_at, job_version.definition
from job join job_version on job_version.job_id = job.id and job_version.version = job.version
where job.tenant_id = :tenant::int and job.name > :after::text
  and (:names::text[] is null or job.name = any (:names::text[]))
order by job.name limit :count::int
