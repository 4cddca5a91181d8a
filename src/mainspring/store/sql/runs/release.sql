-- Put runs that were held for want of a handler back in line, because workers know their jobs by now. Each job and line
-- comes with the seconds that its runs stay held at least.
-- Moves: release.  Index: held_list_idx.
with known as (
    select held.id
    from unnest(:jobs::int[], :lines::int[], :pauses::double precision[]) as known (job_id, line_id, pause)
    cross join lateral (
        select held.id from held
        where held.lane = :lane::smallint and held.job_id = known.job_id and held.line_id = known.line_id
          and held.reason = :reason::text
          and held.due_at <= clock_now()   -- someone may have put it off while it was held
          and held.held_at <= clock_now() - known.pause * interval '1 second'
        order by held.id limit :count::int for update skip locked) as held
    limit :count::int
), freed as materialized (
    delete from held where lane = :lane::smallint and id = any (array(select known.id from known)) returning *
), released as (
    insert into ready (lane, {run}) select lane, {run} from freed
)
select line_id, priority, count(*) as runs from freed group by line_id, priority
