-- End dead letters for good, each once. Their payload stays with history, as with every run that ended.
-- Moves: purge.  Index: primary key.
with purged as materialized (
    delete from dead
    where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
    returning *
), recorded as (
    insert into attempt (lane, run_id, fence, attempt, tenant_id, job_id, job_version, line_id, priority, outcome,
                         state, due_at, finished_at, error, codec, payload, headers, tags, idempotency_key,
                         submitted_by, submitted_at)
    select lane, id, fence, 0, tenant_id, job_id, job_version, line_id, priority, 'cancelled', 'cancelled', due_at,
           clock_now(), jsonb_build_object('code', 'purged', 'message', :reason::text),
           codec, payload, headers, tags, idempotency_key, submitted_by, submitted_at
    from purged
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.purge', id::text, :detail::jsonb from purged
)
select id from purged
