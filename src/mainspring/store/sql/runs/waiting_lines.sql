-- Which of these lines have something to claim, and in which lanes: one look instead of lanes × lines × priorities.
-- Index: ready_claim_idx.
select lanes.lane, lines.line
from unnest(:lanes::smallint[]) as lanes (lane)
cross join unnest(:lines::int[]) as lines (line)
cross join lateral (
    -- In the order of the index, and not just `exists`: without statistics that would search the whole lane.
    select from ready where ready.lane = lanes.lane and ready.line_id = lines.line
    order by ready.priority, ready.rank limit 1) as first
