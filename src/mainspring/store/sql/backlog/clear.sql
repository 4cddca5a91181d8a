-- Remove entries of runs of one lane that do not wait for their first start any more.
-- See the function.
select cleared, last_place, last_run
from clear_entries(:lane::smallint, :gate::text, :after_place::bigint, :after_run::uuid, :count::int)
