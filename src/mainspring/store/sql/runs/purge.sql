-- End dead letters for good, each once. Their payload stays with history, as with every run that ended.
-- Moves: purge.  Index: primary key.
with purged as materialized (
    delete from dead
    where lane = :lane::smallint and id = any (:runs::uuid[]) and tenant_id = :tenant::int
    returning *
), recorded as (
    insert into attempt (lane, run_id, {recorded}, attempt, outcome, state, finished_at, error)
    select lane, id, {recorded}, 0, 'cancelled', 'cancelled', clock_now(),
           jsonb_build_object('code', 'purged', 'message', :reason::text)
    from purged
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.purge', id::text, :detail::jsonb from purged
)
select id from purged
