-- Put dead letters back in line, each once: whoever deletes the row requeues it. Attempts and crashes start again, the
-- fence goes on. The old expiry is dropped: someone wants the run after all. A null parameter leaves its attribute.
-- Moves: requeue.  Index: primary keys.
with raised as materialized (
    delete from dead
    where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
    returning *
), requeued as (
    insert into ready (lane, {run except attempt, crashes, first_started_at, due_at, revision, codec, payload,
                              expires_at, retry_until},
                       revision, codec, payload, expires_at, retry_until)
    select lane, {run except attempt, crashes, first_started_at, due_at, revision, codec, payload,
                  expires_at, retry_until},
           revision + 1, coalesce(:codec::smallint, codec), coalesce(:payload::bytea, payload),
           clock_now() + :max_age::double precision * interval '1 second',
           clock_now() + :max_age::double precision * interval '1 second'
    from raised
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.requeue', id::text, :detail::jsonb from raised
)
select id, line_id, priority from raised
