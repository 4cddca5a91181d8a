-- Put runs that were held for want of a handler back in line, because a worker that knows their jobs has come.
-- Moves: release.  Index: held_job_idx.
with known as (
    select held.id
    from unnest(:jobs::int[]) as job (id)
    cross join lateral (
        select held.id from held
        where held.lane = :lane::smallint and held.job_id = job.id and held.reason = :reason::text
          and held.due_at <= clock_now()   -- someone may have put it off while it was held
        order by held.id limit :count::int for update skip locked) as held
    limit :count::int
), freed as materialized (
    delete from held where lane = :lane::smallint and id = any (array(select known.id from known)) returning *
), released as (
    insert into ready (lane, {run}) select lane, {run} from freed
)
select line_id, priority, count(*) as runs from freed group by line_id, priority
