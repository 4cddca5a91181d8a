-- Take back the runs of some schedules whose instants have not come; answers where their cursors, locked from then on,
-- stand.
-- Moves: withdraw.  See the function in the migrations.
select item.id, stands.revision, stands.nominal_at, stands.due_at, stands.tzdata, stands.calendars_revision
from unnest(:schedules::uuid[], :since::timestamptz[]) as item (id, since)
cross join lateral withdraw_and_lock(:lane::int, item.id, item.since) as stands
