-- Forget progress and checkpoints of runs of one lane that have ended.
-- Index: progress and checkpoint primary keys.
with progress_forgotten as (
    delete from progress where lane = :lane::smallint and run_id = any (:runs::uuid[])
)
delete from checkpoint where lane = :lane::smallint and run_id = any (:runs::uuid[])
