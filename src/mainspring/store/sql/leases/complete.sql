-- Remove leases all of whose runs succeeded, and record that; answers which of them were still this worker's, and whole.
-- Moves: complete.  Hot.  See the function in the migrations.
select complete_leases(:lane::int, :worker::uuid, :leases::uuid[], :sizes::int[], :starts::timestamptz[],
                       :ends::timestamptz[], :results::bytea[])
