-- Of which jobs, and in which lines, runs are held in one lane, of every tenant: one step of the index for each, however many they are.
-- Index: held_list_idx.
with recursive found as (
    (select held.job_id, held.line_id from held
     where held.lane = :lane::smallint and held.line_id >= 0   -- all, said so that the index may serve
     order by held.job_id, held.line_id, held.id limit 1)
    union all
    select following.job_id, following.line_id
    from found cross join lateral (
        select held.job_id, held.line_id from held
        where held.lane = :lane::smallint and held.line_id >= 0
          and (held.job_id, held.line_id) > (found.job_id, found.line_id)
        order by held.job_id, held.line_id, held.id limit 1) as following
)
select found.job_id, job.name as job, found.line_id, line.queue, line.labels
from found join job on job.id = found.job_id join line on line.id = found.line_id
