-- How many runs of some lines may be claimed now, in one lane, counted up to a bound for each line and priority.
-- Index: ready_claim_idx.
select wanted.line_id, sum((
    select count(*) from (
        select ready.rank from ready
        where ready.lane = :lane::smallint and ready.line_id = wanted.line_id and ready.priority = front.priority
          and ready.rank <= rank_bound()
        order by ready.rank limit :bound::int) as few))::bigint as depth
from unnest(:lines::int[]) as wanted (line_id) cross join unnest(:priorities::smallint[]) as front (priority)
group by wanted.line_id
