-- Record instants of a locked schedule that become no run.
-- Index: schedule_pkey.
insert into skipped (lane, schedule_id, first_at, last_at, reason, version)
select lane, id, :first_at::timestamptz, :last_at::timestamptz, :reason::text, version
from schedule where lane = :lane::smallint and id = :schedule::uuid and tenant_id = :tenant::int
on conflict do nothing
