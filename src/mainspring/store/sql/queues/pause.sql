-- From now on nothing of this queue is claimed. No row: it was paused before.
with paused as (
    insert into queue (tenant_id, name, paused_at, paused_by, pause_reason)
    values (:tenant::int, :queue::text, clock_now(), :actor::text, :reason::text)
    on conflict (tenant_id, name) do update
    set paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason
    where queue.paused_at is null
    returning name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'queue.pause', name, jsonb_build_object('reason', :reason::text) from paused
)
select name from paused
