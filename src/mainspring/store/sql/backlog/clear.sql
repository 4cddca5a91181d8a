-- Remove entries of runs of one lane that do not wait for their first start any more.
-- See the function.
select gate, cleared from clear_entries(:lane::smallint, :gates::text[], :count::int)
