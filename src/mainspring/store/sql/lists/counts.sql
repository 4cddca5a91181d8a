-- How many runs of some jobs wait elsewhere than in line or are dead, each lane and line counted up to a bound.
-- Index: later_list_idx, held_list_idx, dead_job_idx.
select job_id, sum(scheduled)::bigint as scheduled, sum(held)::bigint as held, sum(dead)::bigint as dead,
       bool_or(greatest(scheduled, held, dead) >= :bound::int) as is_more
from (
    select job.id as job_id,
           (select count(*) from (
               select from later
               where later.lane = lane.lane and later.job_id = job.id and later.line_id = line.id
               limit :bound::int) as few) as scheduled,
           (select count(*) from (
               select from held
               where held.lane = lane.lane and held.job_id = job.id and held.line_id = line.id
               limit :bound::int) as few) as held,
           (select count(*) from (
               select from dead
               where dead.lane = lane.lane and dead.job_id = job.id and dead.line_id = line.id
               limit :bound::int) as few) as dead
    from lane cross join job cross join line
    where lane.lane = any (:lanes::smallint[]) and job.id = any (:jobs::int[])
      and job.tenant_id = :tenant::int and line.tenant_id = :tenant::int
) as counted
group by job_id
