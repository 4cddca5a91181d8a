-- Nobody resolves dependencies in a lane until COMMIT.
-- Index: lane primary key.
select lane.lane from lane where lane.lane = :lane::smallint for no key update
