-- Runs of some jobs (null: of any) in some lines of one lane that are in line, newest first, from a position on: those
-- among the newest of the lane. A row with `is_last` is where the look gave up: the next one begins with it.
-- No index of jobs is kept for runs in line: it would be written for each run, and most are claimed before anybody asks.
-- Index: primary key.
select * from (
    select case when ready.rank > rank_bound() then 'scheduled' else 'ready' end::run_state as state, ready.id,
           {listed of ready},
           ready.ready_at as since_at, null::text as reason, null::jsonb as error,
           ready.tenant_id = :tenant::int and (:tags::text[] is null or ready.tags @> :tags::text[])
           and case when ready.rank > rank_bound() then 'scheduled' else 'ready' end = any (:states::text[])
           and ready.line_id = any (:lines::int[]) and (:jobs::int[] is null or ready.job_id = any (:jobs::int[]))
           and row_number() over (order by ready.id desc) < :bound::int as is_match,
           row_number() over (order by ready.id desc) = :bound::int as is_last
    from ready
    where ready.lane = :lane::smallint and ready.id < :before::uuid and ready.id >= :since::uuid
    order by ready.id desc limit :bound::int) as looked_at
where is_match or is_last order by id desc limit :count::int
