-- How many runs of a line come before one with this priority and rank, counted up to a bound per lane.
-- Index: ready_claim_idx.  Subqueries for values: see queues/depths.
select sum((select count(*) from (
           select ready.rank from ready
           where ready.lane = lane.lane and ready.line_id = :line::int and ready.tenant_id = :tenant::int
             and (ready.priority, ready.rank) < (:priority::smallint, :rank::bigint)
           limit :bound::int) as few))::bigint
from lane
