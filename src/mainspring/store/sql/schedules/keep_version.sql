-- Keep what a schedule is now, before it becomes something else or nothing.
-- Index: schedule_pkey.
insert into schedule_version (lane, schedule_id, tenant_id, name, version, {content}, changed_at, changed_by, is_deleted)
select lane, id, tenant_id, name, version, {content}, changed_at, changed_by, :is_deleted::boolean
from schedule where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
