-- Whoever releases runs from the gates of one lane does so alone; answers with the database's time.
-- Index: lane primary key.
select date_part('epoch', statement_now()) as now from lane where lane.lane = :lane::smallint for no key update
