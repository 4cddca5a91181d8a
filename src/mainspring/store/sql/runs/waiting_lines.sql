-- Which of these lines have something to claim, each in one lane: one look instead of lanes × lines × priorities.
-- Index: ready_claim_idx.
select lane.lane, pair.line
from lane join unnest(:lanes::smallint[], :lines::int[]) as pair (lane, line) on pair.lane = lane.lane
where (
    -- In the order of the index, and not just `exists`: without statistics that would search the whole lane.
    select true from ready where ready.lane = lane.lane and ready.line_id = pair.line
    order by ready.priority, ready.rank limit 1)
  and not exists (
    select from line join queue on queue.tenant_id = line.tenant_id and queue.name = line.queue
    where line.id = pair.line and queue.paused_at is not null)
