-- By which calendars and time zones the cursors of some lanes were computed, at least; and how often calendars were written.
select lane, calendars_revision, tzdata, (select revision from calendar_revision) as newest_calendars
from lane where lane = any (:lanes::smallint[])
