-- How many runs of each job are in line in one lane, ready or staged, among so many.
-- Index: ready_claim_idx.
select few.job_id, count(*) filter (where few.rank <= rank_bound()) as ready,
       count(*) filter (where few.rank > rank_bound()) as staged
from (
    select ready.job_id, ready.rank from ready
    where ready.lane = :lane::smallint and ready.line_id = any (array(select id from line where tenant_id = :tenant::int))
    limit :bound::int) as few
group by few.job_id
