-- Every run of one job, wherever it is or was, in the order of submission: for tests of applications.
select distinct on (place.submitted_at, place.id)
       place.id, place.line_id, place.priority, place.payload, place.tags, place.idempotency_key, place.due_at
from (
    select id, job_id, line_id, priority, payload, tags, idempotency_key, due_at, submitted_at from ready
    union all
    select id, job_id, line_id, priority, payload, tags, idempotency_key, due_at, submitted_at from later
    union all
    select id, job_id, line_id, priority, payload, tags, idempotency_key, due_at, submitted_at from held
    union all
    select id, job_id, line_id, priority, payload, tags, idempotency_key, due_at, submitted_at from dead
    union all
    select run.id, run.job_id, run.line_id, run.priority, run.payload, run.tags, run.idempotency_key, run.due_at,
           run.submitted_at
    from lease cross join lateral unnest(lease.runs) as run
    union all
    select run_id, job_id, line_id, priority, payload, tags, idempotency_key, due_at, submitted_at from attempt
    where payload is not null
) as place
join job on job.id = place.job_id
where job.tenant_id = :tenant::int and job.name = :job::text
order by place.submitted_at, place.id
