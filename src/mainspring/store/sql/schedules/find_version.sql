-- What a schedule was before, at one version.
-- Index: the primary key.
select version, {content except options}, options::text as options, changed_at, changed_by, replaced_at, is_deleted
from schedule_version
where lane = :lane::smallint and schedule_id = :schedule::uuid and version = :version::int and tenant_id = :tenant::int
