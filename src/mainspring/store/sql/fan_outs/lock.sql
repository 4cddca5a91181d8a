-- Which of some runs of one lane wait for their children, and nobody else acts on them just now, nor will before COMMIT.
-- Index: held primary key.
select held.id from held
where held.lane = :lane::smallint and held.id = any (:runs::uuid[]) and held.reason = 'children'
for update skip locked
