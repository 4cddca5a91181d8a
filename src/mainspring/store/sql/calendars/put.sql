-- Make a calendar, or make it another one: its next version.
insert into calendar (tenant_id, name, revision, document, created_by, changed_by)
values (:tenant::int, :name::text, :revision::bigint, :document::text, :actor::text, :actor::text)
on conflict (tenant_id, name) do update
set version = calendar.version + 1, revision = excluded.revision, document = excluded.document,
    changed_at = excluded.changed_at, changed_by = excluded.changed_by
