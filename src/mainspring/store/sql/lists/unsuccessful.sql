-- Attempts that did not succeed, latest first, from a position on: see lists/ended. Either the ends among them, or
-- failures of runs wherever those are now; then of each run only the latest counts.
-- Index: attempt_failure_idx, attempt_run_idx.
select run.*
from unnest(:jobs::int[], :lines::int[]) as pair (job, line) cross join lateral (
    select * from (
        select attempt.state, attempt.run_id as id, {listed of attempt}, attempt.recorded_at as since_at,
               null::text as reason, attempt.error, attempt.recorded_at,
               attempt.tenant_id = :tenant::int and attempt.state = any (:states::run_state[])
                 and attempt.outcome = any (:outcomes::attempt_outcome[])
                 and (:tags::text[] is null or attempt.tags @> :tags::text[])
                 and (:error::text is null or position(lower(:error::text) in lower(
                      concat(attempt.error ->> 'type', ': ', attempt.error ->> 'message'))) > 0)
                 and not (:only_latest::bool and exists (
                     select from attempt as newer
                     where newer.lane = any (:lanes::smallint[])   -- what Citus goes by
                       and newer.lane = attempt.lane and newer.run_id = attempt.run_id
                       and newer.recorded_at >= attempt.recorded_at and newer.fence > attempt.fence
                       and newer.outcome = any (:outcomes::attempt_outcome[]))) as is_match,
               row_number() over (order by attempt.recorded_at desc, attempt.run_id desc) = :bound::int as is_last
        from attempt
        where attempt.lane = any (:lanes::smallint[]) and attempt.job_id = pair.job and attempt.line_id = pair.line
          and attempt.outcome <> 'succeeded'
          and attempt.recorded_at >= :since::timestamptz and attempt.recorded_at <= :before::timestamptz
          and (attempt.recorded_at < :before::timestamptz or attempt.run_id < :before_id::uuid)
        order by attempt.recorded_at desc, attempt.run_id desc limit :bound::int) as looked_at
    where is_match or is_last order by recorded_at desc, id desc limit :count::int) as run
order by run.recorded_at desc, run.id desc limit :count::int
