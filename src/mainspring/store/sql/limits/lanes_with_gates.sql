-- Lanes in which runs wait at gates.
-- Index: held_gate_idx.
select lane.lane
from lane
where lane.lane = any (:lanes::smallint[]) and (
    -- In the order of the index: see runs/lanes_with_held.
    select true from held
    where held.lane = lane.lane /* and held.lane = any (:lanes::smallint[]) */ and held.gate >= ''
    order by held.gate, held.turn limit 1)
