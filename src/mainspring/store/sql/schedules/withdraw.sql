-- Take back the runs of one schedule whose instant has not come; answers how many.
-- Moves: withdraw.  See the function in the migrations.
select withdraw_staged(:lane::int, :schedule::uuid, :since::timestamptz)
