-- By which calendars and time zones the cursors of some lanes were computed, at least; and how often calendars were written.
select lane.lane, lane.calendars_revision, lane.tzdata, calendar_revision.revision as newest_calendars
from lane cross join calendar_revision where lane.lane = any (:lanes::smallint[])
