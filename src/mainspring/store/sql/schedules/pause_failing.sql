-- Pause a schedule if as many of its runs in a row ended without success as it says.
-- See the function.
select pause_failing(:lane::int, :schedule::uuid, :actor::text)
