-- One operation on many runs.
select id, kind, filter, change, actor, reason, expected, done, skipped, cursor, started_at, worked_at, ended_at
from operation where tenant_id = :tenant::int and id = :id::uuid
