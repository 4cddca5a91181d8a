-- Whoever releases runs from the gates of one lane does so alone. No row: somebody else is at it.
-- Index: lane primary key.
select lane.lane from lane where lane.lane = :lane::smallint for no key update skip locked
