-- Which of some runs of one lane wait for their children: their handlers have returned.
-- Index: held primary key.
select held.id from held
where held.lane = :lane::smallint and held.id = any (:runs::uuid[]) and held.reason = 'children'
