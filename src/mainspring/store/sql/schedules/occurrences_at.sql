-- Which of these instants of one schedule have become runs, and which runs.
-- Index: occurrence_pkey, occurrence_past_pkey.
select nominal_at, run_id from occurrence
where lane = :lane::smallint and schedule_id = :schedule::uuid and nominal_at = any (:instants::timestamptz[])
union all
select nominal_at, run_id from occurrence_past
where lane = :lane::smallint and schedule_id = :schedule::uuid and nominal_at = any (:instants::timestamptz[])
