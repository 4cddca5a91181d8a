-- What is to be submitted after runs of some jobs, and on which condition.
select job.id as job_id, job.name as upstream, chain.downstream, chain.condition, chain.argument
from chain join job on job.tenant_id = chain.tenant_id and job.name = chain.upstream
where job.id = any (:jobs::int[]) and not chain.is_paused
