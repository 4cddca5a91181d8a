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
    select lane, id, {recorded}, ready_at from from_ready
    union all
    select lane, id, {recorded}, null from from_later
    union all
    select lane, id, {recorded}, null from from_held
), recorded as (
    insert into attempt (lane, run_id, {recorded}, ready_at, attempt, outcome, state, finished_at, error)
    select lane, id, {recorded}, ready_at, 0, 'cancelled', 'cancelled', clock_now(),
           jsonb_build_object('code', 'cancelled', 'message', :reason::text)
    from cancelled
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select lane, tenant_id, :actor::text, 'run.cancel', id::text,
           jsonb_build_object('reason', :reason::text) || :detail::jsonb
    from cancelled
)
select id from cancelled
