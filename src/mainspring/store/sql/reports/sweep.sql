-- Forget progress and checkpoints, unchanged for a while, of runs that are nowhere any more: they ended where nobody
-- knew of them (cancelled while they waited, expired, purged). Answers how many rows went.
-- Index: primary keys.
with leftover as materialized (
    select reported.run_id
    from (
        select progress.run_id from progress
        where progress.lane = :lane::smallint and progress.noted_at < clock_now() - interval '10 minutes'
        union
        select checkpoint.run_id from checkpoint
        where checkpoint.lane = :lane::smallint and checkpoint.stored_at < clock_now() - interval '10 minutes'
    ) as reported
    where not exists (select from lease where lane = :lane::smallint and ids @> array[reported.run_id])
      and not exists (select from ready where lane = :lane::smallint and id = reported.run_id)
      and not exists (select from later where lane = :lane::smallint and id = reported.run_id)
      and not exists (select from held where lane = :lane::smallint and id = reported.run_id)
      and not exists (select from dead where lane = :lane::smallint and id = reported.run_id)
), progress_forgotten as (
    delete from progress where lane = :lane::smallint and run_id = any (array(select run_id from leftover))
    returning run_id
), checkpoint_forgotten as (
    delete from checkpoint where lane = :lane::smallint and run_id = any (array(select run_id from leftover))
    returning run_id
)
select (select count(*) from progress_forgotten) + (select count(*) from checkpoint_forgotten)
