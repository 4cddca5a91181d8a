-- Give back those slots of runs that go to wait at gates which they may not keep meanwhile.
-- See the function.
select hold_slots(:lane::smallint, :runs::uuid[], :gates::text[])
