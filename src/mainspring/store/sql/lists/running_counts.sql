-- How many runs of some jobs are being executed.  Index: lease primary key; leases are few.
select run.job_id, count(*) as running
from lease cross join lateral unnest(lease.runs) with ordinality as run
where lease.lane = any (:lanes::smallint[]) and run.job_id = any (:jobs::int[]) and run.tenant_id = :tenant::int
  and get_bit(lease.done, run.ordinality::int - 1) = 0
group by run.job_id
