-- Make many schedules of one lane, each with its cursor; answers with the ids of those whose names were free. Whoever
-- finds that some are missing has to drop their cursors, or to roll back: those have one, too.
-- By schedule_name_idx.
with item as (
    select * from unnest(
        :ids::uuid[], :names::text[], :jobs::int[], :specs::text[], :codecs::smallint[], :payloads::bytea[],
        :options::text[], :tags::text[], :catch_ups::text[], :catch_up_seconds::double precision[],
        :calendars::text[], :nominal_at::timestamptz[], :due_at::timestamptz[], :calendars_revision::bigint[],
        :read_at::timestamptz[], :overlaps::text[], :pause_after_failures::int[])
    as item (id, name, job_id, spec, codec, payload, options, tags, catch_up, catch_up_seconds, calendars, nominal_at, due_at,
             calendars_revision, read_at, overlap, pause_after_failures)
), cursors as (
    insert into cursor (lane, schedule_id, nominal_at, due_at, tzdata, calendars_revision, at_instant)
    select :lane::smallint, item.id, item.nominal_at, item.due_at, :tzdata::text, item.calendars_revision,
           item.overlap <> 'allow' or item.pause_after_failures is not null
    from item
)
insert into schedule (lane, {schedule except version}, created_by, changed_by)
select :lane::smallint, item.id, :tenant::int, item.name, item.job_id, item.spec, item.codec, item.payload,
       item.options::jsonb,
       case when item.tags is not null then array(select jsonb_array_elements_text(item.tags::jsonb)) end,
       item.catch_up, item.catch_up_seconds, false,
       case when item.calendars is not null then array(select jsonb_array_elements_text(item.calendars::jsonb)) end,
       item.read_at, item.overlap, item.pause_after_failures, :actor::text, :actor::text
from item
on conflict (lane, tenant_id, name) where name is not null do nothing
returning id
