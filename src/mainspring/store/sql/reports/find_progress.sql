-- How far a run is, as it said last.
-- Index: progress primary key.
select fraction, message, attempt, fence, noted_at from progress where lane = :lane::smallint and run_id = :run::uuid
