-- Move runs that are due from `later` into the line, the most urgent first; within the batch they keep their order.
-- Moves: promote.  Hot.  Index: later_due_idx, then the primary key.
with due as (
    select candidate.id
    from unnest(:priorities::smallint[], :fronts::timestamptz[]) as front (priority, due_at)
    cross join lateral (
        select later.id from later
        where later.lane = :lane::smallint and later.priority = front.priority
          and later.due_at >= front.due_at and later.due_at <= clock_now()
        order by later.due_at limit :count::int for update skip locked) as candidate
    limit :count::int
), moved as materialized (
    delete from later where later.lane = :lane::smallint and later.id = any (array(select due.id from due))
    returning *
), promoted as (
    insert into ready (lane, {run}, rank)
    select lane, {run}, rank_now() + row_number() over (order by due_at) - 1 from moved
)
select line_id, priority, count(*) as runs, max(due_at) as due_at from moved group by line_id, priority
