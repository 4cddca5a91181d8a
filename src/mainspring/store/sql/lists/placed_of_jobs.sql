-- Runs of some jobs in some lines that wait elsewhere than in line or are dead, newest first, from a position on. Like
-- lists/placed, with an index scan for each pair of job and line. What is in line: lists/ready_of_jobs.
-- Index: later_list_idx, held_list_idx, dead_job_idx.
select run.*
from lane cross join unnest(:jobs::int[], :lines::int[]) as pair (job, line) cross join lateral (
    (select * from (
        select 'scheduled'::run_state as state, later.id, {listed of later},
               null::timestamptz as since_at, null::text as reason, null::jsonb as error,
               later.tenant_id = :tenant::int and (:tags::text[] is null or later.tags @> :tags::text[]) as is_match,
               row_number() over (partition by later.lane order by later.id desc) = :bound::int as is_last
        from later
        where later.lane = lane.lane and later.job_id = pair.job and later.line_id = pair.line
          and later.id < :before::uuid and later.id >= :since::uuid
        order by later.id desc
        limit case when 'scheduled' = any (:states::text[]) then :bound::int else 0 end) as looked_at
    where is_match or is_last order by id desc limit :count::int)
    union all
    (select * from (
        select 'held'::run_state as state, held.id, {listed of held},
               held.held_at as since_at, held.reason as reason, null::jsonb as error,
               held.tenant_id = :tenant::int and (:tags::text[] is null or held.tags @> :tags::text[]) as is_match,
               row_number() over (partition by held.lane order by held.id desc) = :bound::int as is_last
        from held
        where held.lane = lane.lane and held.job_id = pair.job and held.line_id = pair.line
          and held.id < :before::uuid and held.id >= :since::uuid
        order by held.id desc
        limit case when 'held' = any (:states::text[]) then :bound::int else 0 end) as looked_at
    where is_match or is_last order by id desc limit :count::int)
    union all
    (select * from (
        select 'dead'::run_state as state, dead.id, {listed of dead},
               dead.died_at as since_at, null::text as reason, null::jsonb as error,
               dead.tenant_id = :tenant::int and (:tags::text[] is null or dead.tags @> :tags::text[]) as is_match,
               row_number() over (partition by dead.lane order by dead.id desc) = :bound::int as is_last
        from dead
        where dead.lane = lane.lane and dead.job_id = pair.job and dead.line_id = pair.line
          and dead.id < :before::uuid and dead.id >= :since::uuid
        order by dead.id desc
        limit case when 'dead' = any (:states::text[]) then :bound::int else 0 end) as looked_at
    where is_match or is_last order by id desc limit :count::int)
) as run
where lane.lane = any (:lanes::smallint[])
order by run.id desc limit :count::int
