-- Schedules of one lane have no instant left, or were not made.
-- Index: cursor_pkey.
delete from cursor where lane = :lane::smallint and schedule_id = any (:schedules::uuid[])
