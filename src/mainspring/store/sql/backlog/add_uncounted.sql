-- Let entries be counted of runs that come in any case, by whoever locks their gates next: pairs of a gate of this lane and a
-- run of any.
-- See the function.
select add_uncounted(:lane::smallint, :entries::jsonb)
