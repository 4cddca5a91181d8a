-- Which of some runs of one lane are still held until others have ended.
-- Index: held primary key.
select held.id from held
where held.lane = :lane::smallint and held.id = any (:runs::uuid[]) and held.reason = 'parent'
