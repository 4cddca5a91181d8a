-- The last instant of one schedule that was decided: it fired, or it was skipped.
-- Index: occurrence_pkey, occurrence_past_pkey, skipped_pkey.
select max(nominal_at) from (
    (select nominal_at from occurrence where lane = :lane::smallint and schedule_id = :schedule::uuid
     order by nominal_at desc limit 1)
    union all
    (select nominal_at from occurrence_past where lane = :lane::smallint and schedule_id = :schedule::uuid
     order by nominal_at desc limit 1)
    union all
    (select last_at from skipped where lane = :lane::smallint and schedule_id = :schedule::uuid
     order by first_at desc limit 1)) as decided
