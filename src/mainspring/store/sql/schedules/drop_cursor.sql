-- A schedule has no instant left.
-- Index: cursor_pkey.
delete from cursor where lane = :lane::smallint and schedule_id = :schedule::uuid
