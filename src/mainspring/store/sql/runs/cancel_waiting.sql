-- End waiting runs at once, wherever they wait.
-- Moves: cancel.  Index: primary keys.
-- One that does not come back is running, has ended, never was, or moved while we looked: the caller looks again.
with from_ready as (
    delete from ready where lane = :lane::smallint and id = any (:runs::uuid[])
      and tenant_id = :tenant::int returning *
), from_later as (
    delete from later where lane = :lane::smallint and id = any (:runs::uuid[])
      and tenant_id = :tenant::int returning *
), from_held as (
    delete from held where lane = :lane::smallint and id = any (:runs::uuid[])
      and tenant_id = :tenant::int returning *
), cancelled as materialized (
    select lane, id, tenant_id, job_id, job_version, line_id, priority, fence, due_at, ready_at, codec, payload,
           headers, tags, idempotency_key, submitted_by, submitted_at from from_ready
    union all
    select lane, id, tenant_id, job_id, job_version, line_id, priority, fence, due_at, null, codec, payload,
           headers, tags, idempotency_key, submitted_by, submitted_at from from_later
    union all
    select lane, id, tenant_id, job_id, job_version, line_id, priority, fence, due_at, null, codec, payload,
           headers, tags, idempotency_key, submitted_by, submitted_at from from_held
), recorded as (
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, ready_at, finished_at, error, codec, payload, headers, tags, idempotency_key,
                         submitted_by, submitted_at)
    select lane, id, fence, 0, tenant_id, job_id, job_version, line_id, priority, 'cancelled', 'cancelled', due_at,
           ready_at, clock_now(), jsonb_build_object('code', 'cancelled', 'message', :reason::text),
           codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at
    from cancelled
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.cancel', id::text, jsonb_build_object('reason', :reason::text) || :detail::jsonb
    from cancelled
)
select id from cancelled
