-- Pause a schedule that cannot be decided, if it is still as it was seen: it would keep the others waiting.
-- Index: cursor_pkey, schedule_pkey.
with stopped as (
    update cursor set due_at = null, revision = revision + 1
    where lane = :lane::smallint and schedule_id = :schedule::uuid and revision = :revision::int
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
