-- Let runs of one lane and line stand in line as of now whose rank the clock has passed before it was set back; within
-- the batch they keep their order.
-- Index: ready_claim_idx, then the primary key.
with passed as materialized (
    select candidate.id, row_number() over (order by candidate.rank) - 1 as place
    from unnest(:priorities::smallint[]) as front (priority)
    cross join lateral (
        select ready.id, ready.rank from ready
        where ready.lane = :lane::smallint and ready.line_id = :line::int and ready.priority = front.priority
          and ready.rank > rank_bound() + :ahead::bigint
          and not (ready.ready_at = ready.due_at and ready.submitted_at < ready.due_at)
        order by ready.rank limit :count::int for update skip locked) as candidate
    limit :count::int
)
update ready set rank = rank_now() + passed.place, ready_at = clock_now()
from passed
where ready.lane = :lane::smallint and ready.id = passed.id
returning ready.priority
