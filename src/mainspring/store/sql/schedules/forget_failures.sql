-- Count the failures of a schedule from now on: somebody lets it go on, or it is gone.
-- Index: schedule_failure_pkey.
delete from schedule_failure where lane = :lane::smallint and schedule_id = :schedule::uuid
