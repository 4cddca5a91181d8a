-- Where a run stands that is in line.  Index: primary key.
select rank, priority, line_id as line, job_id as job, ctid as position
from ready where lane = :lane::smallint and id = :run::uuid and tenant_id = :tenant::int
