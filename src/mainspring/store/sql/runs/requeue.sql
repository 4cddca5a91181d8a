-- Put dead letters back in line, each once: whoever deletes the row requeues it. Attempts and crashes start again, the
-- fence goes on. The old expiry is dropped: someone wants the run after all. A null parameter leaves its attribute.
-- Moves: requeue.  Index: primary keys.
with raised as materialized (
    delete from dead
    where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
    returning *
), requeued as (
    insert into ready (lane, id, tenant_id, job_id, job_version, line_id, priority, fence, revision, expires_at, codec,
                       payload, headers, tags, idempotency_key, submitted_by, submitted_at, retry_until, overrides)
    select lane, id, tenant_id, job_id, job_version, line_id, priority, fence, revision + 1,
           clock_now() + :max_age::double precision * interval '1 second',
           coalesce(:codec::smallint, codec), coalesce(:payload::bytea, payload), headers, tags, idempotency_key,
           submitted_by, submitted_at, clock_now() + :max_age::double precision * interval '1 second', overrides
    from raised
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.requeue', id::text, :detail::jsonb from raised
)
select id, line_id, priority from raised
