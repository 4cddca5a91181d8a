-- Runs that are being executed, newest first, from a position on. Few enough to be looked at one by one.
-- Index: lease primary key.
select run.*
from lane cross join lateral (
    select 'running'::run_state as state, run.id, {listed of run}, lease.claimed_at as since_at,
           case when get_bit(lease.cancel, run.ordinality::int - 1) = 1 then 'cancelling' end as reason,
           null::jsonb as error, true as is_match, false as is_last
    from lease cross join lateral unnest(lease.runs) with ordinality as run
    where lease.lane = lane.lane and get_bit(lease.done, run.ordinality::int - 1) = 0
      and run.id < :before::uuid and run.id >= :since::uuid and run.tenant_id = :tenant::int
      and (:jobs::int[] is null or run.job_id = any (:jobs::int[]))
      and (:lines::int[] is null or run.line_id = any (:lines::int[]))
      and (:tags::text[] is null or run.tags @> :tags::text[])
    order by run.id desc limit :count::int) as run
where lane.lane = any (:lanes::smallint[])
order by run.id desc limit :count::int
