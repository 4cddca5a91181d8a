-- Take back the runs of one schedule whose instant has not come; answers where its cursor, locked from then on, stands.
-- Moves: withdraw.  See the function in the migrations.
select revision, nominal_at, due_at, tzdata, calendars_revision
from withdraw_and_lock(:lane::int, :schedule::uuid, :since::timestamptz)
