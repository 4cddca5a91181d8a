-- Make runs for instants of one schedule that have passed and became none; answers with the runs that were made.
-- Moves: submit.  See the function in the migrations.
select run_id
from backfill_schedule(:lane::int, :schedule::uuid, :tenant::int, :instants::timestamptz[], :due::timestamptz[],
                       :previous::timestamptz[], :runs::uuid[], :versions::int[], :chosen::int[], :templates::jsonb,
                       :actor::text, :operation::uuid) as made (run_id)
