-- What schedules of this name were before, newest first: also those that were deleted.
-- Index: schedule_version_name_idx.
select schedule_id, version, {content except options}, options::text as options, changed_at, changed_by, replaced_at, is_deleted
from schedule_version
where lane = :lane::smallint and tenant_id = :tenant::int and name = :name::text
order by replaced_at desc limit :count::int
