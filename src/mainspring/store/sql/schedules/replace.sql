-- Make a locked schedule something else: its next version.
-- Index: schedule_pkey.
update schedule
set version = version + 1, job_id = :job::int, spec = :spec::text, codec = :codec::smallint, payload = :payload::bytea,
    options = :options::jsonb, tags = :tags::text[], catch_up = :catch_up::text,
    catch_up_seconds = :catch_up_seconds::double precision, is_declared = :is_declared::boolean,
    calendars = :calendars::text[], read_at = :read_at::timestamptz,
    overlap = :overlap::text, pause_after_failures = :pause_after_failures::int,
    state = :state::schedule_state, changed_at = clock_now(), changed_by = :actor::text
where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
