-- Which of these lines, each in one lane, have runs whose rank the clock has passed before: it was set back since, and they
-- would wait until it gets there again. Nothing is staged so far ahead, unless before that, too: it waits for its instant.
-- Index: ready_claim_idx.
select looked_at.lane, looked_at.line
from (
    select lane.lane, pair.line, (
        -- In the order of the index: without statistics anything else would search the whole lane.
        select true from ready
        where ready.lane = lane.lane /* and ready.lane = any (:lanes::smallint[]) */ and ready.line_id = pair.line and ready.priority = front.priority
          and ready.rank > rank_bound() + :ahead::bigint
          and not (ready.ready_at = ready.due_at and ready.submitted_at < ready.due_at)
        order by ready.rank limit 1) as is_passed
    from lane join unnest(:lanes::smallint[], :lines::int[]) as pair (lane, line) on pair.lane = lane.lane
        /* and lane.lane = any (:lanes::smallint[]) */
    cross join unnest(:priorities::smallint[]) as front (priority)) as looked_at
where looked_at.is_passed
group by looked_at.lane, looked_at.line
