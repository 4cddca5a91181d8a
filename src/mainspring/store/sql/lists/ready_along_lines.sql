-- Runs of some jobs in some lines of one lane that are in line, newest first, from a position on, however deep in the
-- backlog they are: the index of claims is read along each line, and says the job of each run. A null stands for any job.
-- If there are more than so many, `is_last` is true for all: which of them are the newest is not known then.
-- Index: ready_claim_idx.
select * from (
    select case when run.rank > rank_bound() then 'scheduled' else 'ready' end::run_state as state, run.id,
           {listed of run},
           run.ready_at as since_at, null::text as reason, null::jsonb as error,
           run.id < :before::uuid and run.id >= :since::uuid
           and run.tenant_id = :tenant::int and (:tags::text[] is null or run.tags @> :tags::text[])
           and case when run.rank > rank_bound() then 'scheduled' else 'ready' end = any (:states::text[]) as is_match,
           count(*) over () >= :bound::int as is_last
    from (
        select ready.*
        from unnest(:jobs::int[], :lines::int[]) as pair (job, line) cross join lateral (
            -- A range of jobs, so that one condition serves one job and all of them.
            select ready.id, {listed of ready}, ready.ready_at, ready.rank, ready.tenant_id from ready
            where ready.lane = :lane::smallint and ready.line_id = pair.line
              and ready.job_id between coalesce(pair.job, -2147483648) and coalesce(pair.job, 2147483647)
            offset 0) as ready   -- else the primary key would look as good, which says nothing of jobs
        limit :bound::int) as run) as looked_at
where is_match or is_last order by id desc limit :count::int
