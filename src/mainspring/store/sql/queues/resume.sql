-- What waits in this queue may be claimed again. No row: it was not paused.
with resumed as (
    update queue set paused_at = null, paused_by = null, pause_reason = null
    where tenant_id = :tenant::int and name = :queue::text and paused_at is not null
    returning name
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'queue.resume', name, jsonb_build_object('reason', :reason::text) from resumed
)
select name from resumed
