-- Remove leases all of whose runs succeeded, and record that; answers which of them were still this worker's, and whole.
-- Moves: complete.  Hot.  See the function.
select complete_whole_leases(:lane::smallint, :worker::uuid, :leases::uuid[], :sizes::int[], :starts::text, :ends::text,
                             :results::bytea[])
