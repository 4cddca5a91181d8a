-- Whoever releases runs from the gates of one lane does so alone.
-- Index: lane primary key.
select lane.lane from lane where lane.lane = :lane::smallint for no key update
