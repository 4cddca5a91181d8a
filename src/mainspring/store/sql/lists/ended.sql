-- Runs that ended, latest first, from a position on, by the row of history that is their end: see lists/placed.
-- One index scan per job and line, from the newest partition back. `lanes` are all, or on Citus one at a time.
-- Index: attempt_job_idx.
select run.*
from unnest(:jobs::int[], :lines::int[]) as pair (job, line) cross join lateral (
    select * from (
        select attempt.state, attempt.run_id as id, {listed of attempt}, attempt.recorded_at as since_at,
               null::text as reason, attempt.error, attempt.recorded_at,
               attempt.tenant_id = :tenant::int and attempt.state = any (:states::run_state[])
                 and (:tags::text[] is null or attempt.tags @> :tags::text[]) as is_match,
               row_number() over (order by attempt.recorded_at desc, attempt.run_id desc) = :bound::int as is_last
        from attempt
        where attempt.lane = any (:lanes::smallint[]) and attempt.job_id = pair.job and attempt.line_id = pair.line
          and attempt.recorded_at >= :since::timestamptz and attempt.recorded_at <= :before::timestamptz
          and (attempt.recorded_at < :before::timestamptz or attempt.run_id < :before_id::uuid)
        order by attempt.recorded_at desc, attempt.run_id desc limit :bound::int) as looked_at
    where is_match or is_last order by recorded_at desc, id desc limit :count::int) as run
order by run.recorded_at desc, run.id desc limit :count::int
