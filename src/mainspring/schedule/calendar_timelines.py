"""What calendars leave of a timeline: instants that are filtered, or moved to the end of a blackout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.schedule.calendar import BlackoutPolicy, Use
from mainspring.schedule.timeline import step
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import first_instant_at, instant_of, wall_of

if TYPE_CHECKING:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    from mainspring.schedule.calendar import Calendar, CalendarUse
    from mainspring.schedule.timeline import Timeline


def with_calendars(timeline: Timeline, uses: tuple[CalendarUse, ...], zone: ZoneInfo) -> Timeline:
    """Filters first, then moves; what was moved has to pass the filters too."""
    moving = [each.calendar for each in uses if each.then is BlackoutPolicy.MOVE]
    filters = [(each.calendar, each.use is Use.INCLUDE) for each in uses if each.then is not BlackoutPolicy.MOVE]
    if filters:
        timeline = FilteredTimeline(timeline, filters, zone)
    if moving:
        timeline = MovedTimeline(timeline, moving, zone)
    return FilteredTimeline(timeline, filters, zone) if filters and moving else timeline


class FilteredTimeline:
    """The instants inside of some calendars and outside of others. Whole stretches are passed over at once."""

    def __init__(self, base: Timeline, filters: list[tuple[Calendar, bool]], zone: ZoneInfo) -> None:
        self._base, self._filters, self._zone = base, filters, zone

    def next_after(self, instant: datetime) -> datetime | None:
        while True:
            step()
            found = self._base.next_after(instant)
            in_the_way = self._in_the_way(found)
            if found is None or in_the_way is None:
                return found
            change = in_the_way.next_change(wall_of(self._zone, found))
            if change is None:
                return None
            instant = max(found, first_instant_at(self._zone, change) - TICK)

    def prev_before(self, instant: datetime) -> datetime | None:
        while True:
            step()
            found = self._base.prev_before(instant)
            in_the_way = self._in_the_way(found)
            if found is None or in_the_way is None:
                return found
            change = in_the_way.last_change(wall_of(self._zone, found))
            if change is None:
                return None
            instant = min(found, first_instant_at(self._zone, change))

    def _in_the_way(self, instant: datetime | None) -> Calendar | None:
        if instant is None:
            return None
        wall = wall_of(self._zone, instant)
        return next((calendar for calendar, inside in self._filters if calendar.covers(wall) is not inside), None)


class MovedTimeline:
    """Instants inside of blackouts, moved to their end; several in one blackout become one."""

    def __init__(self, base: Timeline, blackouts: list[Calendar], zone: ZoneInfo) -> None:
        self._base, self._blackouts, self._zone = base, blackouts, zone

    def next_after(self, instant: datetime) -> datetime | None:
        since = self._beginning(instant) - TICK if self._blackout_at(instant) else instant
        while True:
            step()
            found = self._base.next_after(since)
            if found is None:
                return None
            moved = self._moved(found)
            if moved is None or moved > instant:
                return moved
            since = found

    def prev_before(self, instant: datetime) -> datetime | None:
        before = instant
        while True:
            step()
            found = self._base.prev_before(before)
            if found is None:
                return None
            moved = self._moved(found)
            if moved is not None and moved < instant:
                return moved
            before = min(found, self._beginning(found))

    def _blackout_at(self, instant: datetime) -> Calendar | None:
        wall = wall_of(self._zone, instant)
        return next((each for each in self._blackouts if each.covers(wall)), None)

    def _moved(self, instant: datetime) -> datetime | None:
        """Where an instant goes; None if a blackout has no end."""
        while True:
            step()
            blackout = self._blackout_at(instant)
            if blackout is None:
                return instant
            end = blackout.next_change(wall_of(self._zone, instant))
            if end is None:
                return None
            first = first_instant_at(self._zone, end)
            instant = first if first > instant else max(instant + TICK, instant_of(self._zone, end, fold=1))

    def _beginning(self, instant: datetime) -> datetime:
        """Where the blackouts around an instant begin."""
        while True:
            step()
            # Where one of them begins, another may go on: what counts is which of them lies just before.
            blackout = self._blackout_at(instant - TICK)
            begin = None if blackout is None else blackout.last_change(wall_of(self._zone, instant - TICK))
            if begin is None:
                return instant
            instant = min(instant - TICK, first_instant_at(self._zone, begin))
