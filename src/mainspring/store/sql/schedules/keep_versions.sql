-- Keep what some schedules are now, before they become something else.
-- Index: schedule_pkey.
insert into schedule_version (lane, schedule_id, tenant_id, name, version, {content}, changed_at, changed_by, is_deleted)
select lane, id, tenant_id, name, version, {content}, changed_at, changed_by, false
from schedule where lane = :lane::smallint and id = any (:schedules::uuid[]) and tenant_id = :tenant::int
