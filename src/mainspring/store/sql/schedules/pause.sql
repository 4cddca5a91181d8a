-- Pause a locked schedule; one that is paused gets the new reason.
-- Index: schedule_pkey.
update schedule
set state = 'paused', paused_at = least(paused_at, clock_now()), paused_by = :actor::text,
    pause_reason = :reason::text, paused_until = :until::timestamptz
where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
