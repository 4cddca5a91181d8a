-- A worker says what it has done for its lines so far, in its home lane.
-- Index: the primary keys.
select tally_worker(:lane::smallint, :worker::uuid, :lines::int[], :finished::bigint[],
                    :busy_seconds::double precision[], :holdings::int[])
