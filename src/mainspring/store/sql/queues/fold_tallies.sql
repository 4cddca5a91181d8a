-- Add up what workers long gone have done, in one lane: their rows go, the sums stay.
-- Index: worker_tally's primary key.
select fold_tallies(:lane::smallint)
