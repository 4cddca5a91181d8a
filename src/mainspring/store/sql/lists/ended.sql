-- Runs that ended, latest first, from a position on, by the row of history that is their end: see lists/placed.
-- One index scan per job and line, from the newest partition back. A row that it finds may name others (`covers`), which are
-- like it in all that is asked for here; so what the list shows of them is looked up for its page only. Of a run's rows, one
-- has an end as its state.
-- `lanes` are all, or on Citus one at a time.
-- Index: attempt_job_idx, attempt_run_idx.
select named.state, named.id, {listed of attempt}, named.recorded_at as since_at, null::text as reason, attempt.error,
       named.recorded_at, named.is_match, named.is_last
from (
    select run.*
    from unnest(:jobs::int[], :lines::int[]) as pair (job, line) cross join lateral (
        select * from (
            select head.lane, head.state, covered.id, head.recorded_at,
                   head.tenant_id = :tenant::int and head.state = any (:states::run_state[])
                     and (:tags::text[] is null or head.tags @> :tags::text[]) as is_match,
                   row_number() over (order by head.recorded_at desc, covered.id desc) = :bound::int as is_last
            from attempt as head
            cross join lateral unnest(coalesce(head.covers, array[head.run_id])) as covered (id)
            where head.lane = any (:lanes::smallint[]) and head.job_id = pair.job and head.line_id = pair.line
              and head.is_covered is not true
              and head.recorded_at >= :since::timestamptz and head.recorded_at <= :before::timestamptz
              and (head.recorded_at < :before::timestamptz or covered.id < :before_id::uuid)
            order by head.recorded_at desc, covered.id desc limit :bound::int) as looked_at
        where is_match or is_last order by recorded_at desc, id desc limit :count::int) as run
    order by run.recorded_at desc, run.id desc limit :count::int) as named
cross join lateral (
    select {listed of attempt}, attempt.error from attempt
    where attempt.lane = any (:lanes::smallint[])   -- what Citus goes by
      and attempt.lane = named.lane and attempt.run_id = named.id and attempt.state = named.state
      and attempt.recorded_at = named.recorded_at
      and attempt.recorded_at >= :since::timestamptz and attempt.recorded_at <= :before::timestamptz   -- fewer partitions
    limit 1) as attempt
order by named.recorded_at desc, named.id desc
