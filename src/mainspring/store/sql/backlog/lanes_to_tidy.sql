-- Lanes in which backlogs may be cleared away, or entries of callers are to be counted.
-- Index: backlog_gate_tidy_idx, backlog_addition primary key.
select lane.lane
from lane
where lane.lane = any (:lanes::smallint[]) and (
    exists (select from backlog_gate
            where backlog_gate.lane = lane.lane /* and backlog_gate.lane = any (:lanes::smallint[]) */ and backlog_gate.tidy_at <= clock_now())
    or exists (select from backlog_addition
               where backlog_addition.lane = lane.lane /* and backlog_addition.lane = any (:lanes::smallint[]) */))
