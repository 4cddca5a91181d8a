-- Make some locked schedules, none of which is paused, something else: their next versions.
-- Index: schedule_pkey.
update schedule
set version = schedule.version + 1, job_id = item.job_id, spec = item.spec, codec = item.codec, payload = item.payload,
    options = item.options::jsonb,
    tags = case when item.tags is not null then array(select jsonb_array_elements_text(item.tags::jsonb)) end,
    catch_up = item.catch_up, catch_up_seconds = item.catch_up_seconds, is_declared = item.is_declared,
    calendars = null, read_at = item.read_at, overlap = item.overlap,
    pause_after_failures = item.pause_after_failures,
    state = 'active', changed_at = clock_now(), changed_by = :actor::text
from unnest(
    :schedules::uuid[], :jobs::int[], :specs::text[], :codecs::smallint[], :payloads::bytea[], :options::text[],
    :tags::text[], :catch_ups::text[], :catch_up_seconds::double precision[], :declared::boolean[],
    :read_at::timestamptz[], :overlaps::text[], :pause_after_failures::int[])
    as item (id, job_id, spec, codec, payload, options, tags, catch_up, catch_up_seconds, is_declared, read_at,
             overlap, pause_after_failures)
where schedule.lane = :lane::smallint and schedule.id = item.id and schedule.tenant_id = :tenant::int
