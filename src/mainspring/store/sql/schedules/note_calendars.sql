-- All cursors of a lane are computed by the calendars of this revision, or newer ones.
update lane set calendars_revision = greatest(calendars_revision, :revision::bigint) where lane = :lane::smallint
