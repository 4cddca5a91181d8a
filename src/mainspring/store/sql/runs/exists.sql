-- Whether a run is in any place or in history.
-- Index: primary keys, attempt_run_idx in the partitions since the run was made; lease through `ids`, which is small.
select exists (select from ready where lane = :lane::smallint and id = :run::uuid)
    or exists (select from later where lane = :lane::smallint and id = :run::uuid)
    or exists (select from held where lane = :lane::smallint and id = :run::uuid)
    or exists (select from dead where lane = :lane::smallint and id = :run::uuid)
    or exists (select from lease where lane = :lane::smallint and ids @> array[:run::uuid])
    or exists (select from attempt
               where lane = :lane::smallint and run_id = :run::uuid and recorded_at >= :since::timestamptz)
