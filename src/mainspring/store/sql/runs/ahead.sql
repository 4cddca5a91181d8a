-- How many runs of a line come before one that stands there, counted up to a bound per lane.
-- Runs that became ready together have one rank. Claims read the index, which has those of a lane by job, and then as they
-- stand in the table; so the first rows of the index are all that has to be read. Lanes take turns, in no fixed order: here the
-- lower number comes first, so that no two runs have the same place.
-- Index: ready_claim_idx.  Subqueries for values: see queues/depths.
select sum((select count(*) from (
           select ready.priority, ready.rank, ready.job_id, ready.ctid as position from ready
           where ready.lane = lane.lane and ready.line_id = :line::int and ready.tenant_id = :tenant::int
             and (ready.priority, ready.rank) <= (:priority::smallint, :rank::bigint)
           order by ready.priority, ready.rank, ready.job_id limit :bound::int) as few
       where (few.priority, few.rank, lane.lane, few.job_id, few.position)
             < (:priority::smallint, :rank::bigint, :lane::smallint, :job::int, :position::tid)))::bigint
from lane
