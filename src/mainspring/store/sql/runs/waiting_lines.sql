-- Which of these lines have something to claim, each in one lane: one look instead of lanes × lines × priorities.
-- Index: ready_claim_idx.
select pair.lane, pair.line
from unnest(:lanes::smallint[], :lines::int[]) as pair (lane, line)
cross join lateral (
    -- In the order of the index, and not just `exists`: without statistics that would search the whole lane.
    select from ready where ready.lane = pair.lane and ready.line_id = pair.line
    order by ready.priority, ready.rank limit 1) as first
