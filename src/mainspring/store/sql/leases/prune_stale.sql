-- Forget some stale completions of one lane that were recorded long ago.
-- Index: stale primary key. A completion is younger than its run, and the id of a run begins with its time: so only old
-- runs are looked at, and no index by time is needed.
with old as materialized (
    select run_id, fence from stale
    where lane = :lane::smallint and recorded_at < clock_now() - :older_than::interval
      and run_id < rpad(lpad(to_hex((date_part('epoch', clock_now() - :older_than::interval) * 1000)::bigint), 12, '0'),
                        32, '0')::uuid
    limit :count::int for update skip locked
), forgotten as (
    delete from stale using old
    where stale.lane = :lane::smallint and stale.run_id = old.run_id and stale.fence = old.fence
    returning stale.run_id
)
select count(*) from forgotten
