-- Operations on many runs, newest first.
select id, kind, filter, change, actor, reason, expected, done, skipped, cursor, started_at, worked_at, ended_at
from operation where tenant_id = :tenant::int order by started_at desc limit :count::int
