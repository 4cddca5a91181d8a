-- Runs of some jobs (null: of any) in some lines that are in line, newest first, each lane from a position of its own on:
-- those among the newest of the lane. A row with `is_last` is where the look gave up: the next one begins with it.
-- No index of jobs is kept for runs in line: it would be written for each run, and most are claimed before anybody asks.
-- Where a look ends is found in the index alone, so that rows which do not match cost no more than being read.
-- Index: primary key.
select run.*
from lane cross join lateral (
    (select case when ready.rank > rank_bound() then 'scheduled' else 'ready' end::run_state as state, ready.id,
            {listed of ready},
            ready.ready_at as since_at, null::text as reason, null::jsonb as error, true as is_match, false as is_last
     from ready
     where ready.lane = lane.lane
       and ready.id < (:befores::uuid[])[array_position(:lanes::smallint[], lane.lane)]
       and ready.id > coalesce((
           select ending.id from ready as ending
           where ending.lane = lane.lane
             and ending.id < (:befores::uuid[])[array_position(:lanes::smallint[], lane.lane)]
             and ending.id >= :since::uuid
           order by ending.id desc limit 1 offset :bound::int - 1), '00000000-0000-0000-0000-000000000000')
       and ready.id >= :since::uuid
       and ready.line_id = any (:lines::int[]) and (:jobs::int[] is null or ready.job_id = any (:jobs::int[]))
       and ready.tenant_id = :tenant::int and (:tags::text[] is null or ready.tags @> :tags::text[])
       and case when ready.rank > rank_bound() then 'scheduled' else 'ready' end = any (:states::text[])
     order by ready.id desc limit :count::int)
    union all
    (select case when ready.rank > rank_bound() then 'scheduled' else 'ready' end::run_state, ready.id,
            {listed of ready}, ready.ready_at, null::text, null::jsonb, false, true
     from ready
     where ready.lane = lane.lane
       and ready.id < (:befores::uuid[])[array_position(:lanes::smallint[], lane.lane)]
       and ready.id >= :since::uuid
     order by ready.id desc limit 1 offset :bound::int - 1)
) as run
where lane.lane = any (:lanes::smallint[])
-- Older ones than the wanted number are of no use, whatever later looks find; where looks ended must be known.
order by run.is_last desc, run.id desc limit :count::int + cardinality(:lanes::smallint[])
