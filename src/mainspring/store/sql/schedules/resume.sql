-- Let a locked schedule go on, or end if nothing is left of it.
-- Index: schedule_pkey.
update schedule
set state = :state::schedule_state, paused_at = null, paused_by = null, pause_reason = null, paused_until = null
where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
