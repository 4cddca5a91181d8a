-- Ask a live worker to finish what it holds and end; its supervisor hears of it at the next heartbeat.
with asked as (
    update worker set drain_requested_at = least(drain_requested_at, clock_now())   -- the first time someone asked
    where id = :worker::uuid and state = 'live'
    returning id
), audited as (
    insert into audit (lane, tenant_id, actor, action, subject, detail)
    select 0, :tenant::int, :actor::text, 'worker.drain', id::text, jsonb_build_object('reason', :reason::text)
    from asked
)
select id from asked
