-- The arguments of runs of one lane that wait for results of others. Locked: they are written back with the results in them.
-- Index: held primary key.
select held.id, held.payload from held
where held.lane = :lane::smallint and held.id = any (:runs::uuid[]) and held.reason = 'parent'
for update skip locked
