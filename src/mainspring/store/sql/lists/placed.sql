-- Runs that wait or are dead, newest first, from a position on: those in the wanted states, of all lanes.
-- Each place of each lane is asked by its own index scan, over a bounded number of rows. A row with `is_last` is where
-- such a scan gave up: below it there may be more.
-- Where nobody wants to look, the limit is 0: by a condition that is never true Citus would lose sight of a table.
-- Index: primary keys.
select run.*
from lane cross join lateral (
    (select * from (
        select case when ready.rank > rank_bound() then 'scheduled' else 'ready' end::run_state as state, ready.id,
               {listed of ready},
               ready.ready_at as since_at, null::text as reason, null::jsonb as error,
               ready.tenant_id = :tenant::int and (:tags::text[] is null or ready.tags @> :tags::text[])
               and case when ready.rank > rank_bound() then 'scheduled' else 'ready' end = any (:states::text[]) as is_match,
               row_number() over (partition by ready.lane order by ready.id desc) = :bound::int as is_last
        from ready
        where ready.lane = lane.lane
          and ready.id < :before::uuid and ready.id >= :since::uuid
        order by ready.id desc
        limit case when :states::text[] && array['ready', 'scheduled'] then :bound::int else 0 end) as looked_at
    where is_match or is_last order by id desc limit :count::int)
    union all
    (select * from (
        select 'scheduled'::run_state as state, later.id, {listed of later},
               null::timestamptz as since_at, null::text as reason, null::jsonb as error,
               later.tenant_id = :tenant::int and (:tags::text[] is null or later.tags @> :tags::text[]) as is_match,
               row_number() over (partition by later.lane order by later.id desc) = :bound::int as is_last
        from later
        where later.lane = lane.lane
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
        where held.lane = lane.lane
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
        where dead.lane = lane.lane
          and dead.id < :before::uuid and dead.id >= :since::uuid
        order by dead.id desc
        limit case when 'dead' = any (:states::text[]) then :bound::int else 0 end) as looked_at
    where is_match or is_last order by id desc limit :count::int)
) as run
where lane.lane = any (:lanes::smallint[])
order by run.id desc limit :count::int
