-- Make a schedule, unless its name is taken.
-- By schedule_name_idx.
insert into schedule (lane, {schedule except version}, state, created_by, changed_by)
values (:lane::smallint, :id::uuid, :tenant::int, :name::text, :job::int, :spec::text, :codec::smallint, :payload::bytea,
        :options::jsonb, :tags::text[], :catch_up::text, :catch_up_seconds::double precision, :is_declared::boolean,
        :calendars::text[], :read_at::timestamptz, :overlap::text, :pause_after_failures::int, :state::schedule_state, :actor::text, :actor::text)
on conflict (lane, tenant_id, name) where name is not null do nothing
returning id
