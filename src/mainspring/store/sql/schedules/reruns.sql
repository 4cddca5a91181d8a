-- Which run stands for each of these runs of one lane since it was run again: the last one that was made of it.
-- Index: audit_subject_idx.
select run.id as run_id, again.rerun::uuid as rerun
from unnest(:runs::uuid[]) as run (id)
cross join lateral (
    select audit.detail ->> 'rerun' as rerun from audit
    where audit.lane = :lane::smallint and audit.subject = run.id::text and audit.tenant_id = :tenant::int
      and audit.action = 'run.rerun'
    order by audit.at desc limit 1) as again
