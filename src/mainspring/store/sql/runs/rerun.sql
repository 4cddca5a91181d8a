-- Run runs of one lane that ended once more: each as a new run in the same lane that says whose rerun it is. What the
-- old one was to be done under (key, expiry, policies of its own) is over with it; which occurrence it was for is not.
-- Moves: submit.  Index: attempt_run_idx, in the partitions since the oldest of them was made.
with again as materialized (
    select distinct on (attempt.run_id) attempt.*, fresh.id as fresh_id
    from attempt join unnest(:runs::uuid[], :ids::uuid[]) as fresh (run_id, id) on fresh.run_id = attempt.run_id
    where attempt.lane = :lane::smallint and attempt.run_id = any (:runs::uuid[])
      and attempt.recorded_at >= :since::timestamptz and attempt.tenant_id = :tenant::int
      and attempt.state in ({ends}) and attempt.payload is not null
    order by attempt.run_id, attempt.recorded_at desc
), submitted as (
    insert into ready (lane, id, {recorded except fence, due_at, idempotency_key, submitted_at, submitted_by, headers,
                                  codec, payload},
                       submitted_by, headers, codec, payload)
    select lane, fresh_id, {recorded except fence, due_at, idempotency_key, submitted_at, submitted_by, headers,
                            codec, payload},
           :actor::text,
           jsonb_strip_nulls(jsonb_build_object(
               'rerun_of', run_id, 'schedule', headers -> 'schedule', 'schedule_version', headers -> 'schedule_version',
               'occurrence', headers -> 'occurrence', 'previous_occurrence', headers -> 'previous_occurrence',
               '@occurrence', headers -> '@occurrence')),
           coalesce(:codec::smallint, codec),
           coalesce(:payload::bytea, payload)
    from again
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.rerun', run_id::text,
           :detail::jsonb || jsonb_build_object('rerun', fresh_id)
    from again
)
select run_id, fresh_id as id, line_id, priority from again
