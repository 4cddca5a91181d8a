-- Pause a schedule that cannot be decided, if it is still as it was seen: it would keep the others waiting. Who changes it
-- at this moment has locked it, and its cursor after it: then it is passed over.
-- Index: schedule_pkey, cursor_pkey.
with locked as materialized (
    select id from schedule where lane = :lane::smallint and id = :schedule::uuid for update skip locked
), stopped as (
    update cursor set due_at = null, revision = revision + 1
    where lane = :lane::smallint and schedule_id = any (array(select id from locked)) and revision = :revision::int
    returning schedule_id
), paused as (
    update schedule
    set state = 'paused', paused_at = clock_now(), paused_by = :actor::text, pause_reason = :reason::text,
        paused_until = null
    where lane = :lane::smallint and id = any (array(select schedule_id from stopped))
    returning lane, tenant_id, id
)
insert into audit (lane, tenant_id, actor, action, subject, detail)
select lane, tenant_id, :actor::text, 'schedule.pause', id::text, jsonb_build_object('reason', :reason::text) from paused
