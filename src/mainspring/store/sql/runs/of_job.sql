-- Every run of one job, wherever it is or was, in the order of submission: for tests of applications.
select distinct on (place.submitted_at, place.id) place.*
from (
    select id, {recorded} from ready
    union all
    select id, {recorded} from later
    union all
    select id, {recorded} from held
    union all
    select id, {recorded} from dead
    union all
    select run.id, {recorded of run} from lease cross join lateral unnest(lease.runs) as run
    union all
    select run_id, {recorded} from attempt where payload is not null
) as place
join job on job.id = place.job_id
where job.tenant_id = :tenant::int and job.name = :job::text
order by place.submitted_at, place.id
