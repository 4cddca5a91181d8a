-- What the last attempt of a run that stored a checkpoint wanted the next one to know.
-- Index: checkpoint primary key.
select value from checkpoint where lane = :lane::smallint and run_id = :run::uuid
