-- Remove leases all of whose runs succeeded, and record that; answers which of them were still this worker's, and whole.
-- Moves: complete.  Hot.  See the function in the migrations.
-- Starts and ends come as text: the driver takes five times as long to make an array of numbers.
select complete_leases(:lane::int, :worker::uuid, :leases::uuid[], :sizes::int[], :starts::text::bigint[],
                       :ends::text::bigint[], :results::bytea[])
