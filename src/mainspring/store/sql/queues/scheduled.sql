-- How many runs of each line wait for their time, counted up to a bound per lane. Without a queue, those of all queues.
-- Index: later_list_idx, which is for what names a job: each has one.
-- Subqueries for values: see depths. In the order of the index: without statistics anything else would search the whole lane.
select line.id as line_id,
       sum((select count(*) from (
           select from later
           where later.lane = lane.lane and later.line_id = line.id and later.job_id > 0
           order by later.line_id, later.job_id, later.id limit :bound::int) as few))::bigint as scheduled
from lane cross join line
where line.tenant_id = :tenant::int and line.queue = coalesce(:queue::text, line.queue)
group by line.id
