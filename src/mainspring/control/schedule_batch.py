"""Many schedules that are asked for at once, and what is worked out about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.schedule_errors import batch_too_large, names_repeated, not_a_request
from mainspring.control.schedule_requests import ScheduleRequest
from mainspring.control.schedule_rows import content_of, kept
from mainspring.errors import InvalidSchedule
from mainspring.schedule.text import fired
from mainspring.scheduler.calendars import resolved

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mainspring.schedule.schedule import Occurrence
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.store.connection import Record
    from mainspring.store.schedules import Content

MAX_BATCH = 100_000


class ScheduleBatch(NamedTuple):
    """What is asked for, and what its rows will keep, by name."""

    requests: Sequence[ScheduleRequest]
    contents: Mapping[str, Content]

    @property
    def jobs(self) -> dict[int, str]:
        return {self.contents[request.name].job: request.job for request in self.requests}

    def is_there(self, request: ScheduleRequest, row: Record) -> bool:
        """Whether a row is what is asked for."""
        _, content = kept(request, self.contents[request.name], row)
        return content.is_same(content_of(row))


class FirstInstants:
    """Finds the first instants of schedules. What is in stored calendars is worked out once for all that share it."""

    def __init__(self, calendars: Sequence[Record], now: datetime) -> None:
        self._calendars = calendars
        self._now = now
        self._found: dict[int, ResolvedSchedule] = {}

    def of(self, request: ScheduleRequest) -> tuple[ResolvedSchedule, Occurrence]:
        found = self._found.get(id(request.schedule))
        if found is None:
            found = self._found[id(request.schedule)] = resolved(request.schedule, self._calendars)
        try:
            return found, request.first_after(self._now, found.schedule)
        except InvalidSchedule:
            fired(found.schedule, request.name)  # says why, if its calendars leave nothing
            raise


def checked_batch(requests: list[ScheduleRequest]) -> list[ScheduleRequest]:
    """Refuses too many, what is no request, and names that stand twice."""
    if len(requests) > MAX_BATCH:
        raise batch_too_large(len(requests), MAX_BATCH)
    for position, request in enumerate(requests):
        if not isinstance(request, ScheduleRequest):
            raise not_a_request(position, request)
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for request in requests:
        if request.name in seen:
            repeated[request.name] = None
        seen.add(request.name)
    if repeated:
        raise names_repeated(list(repeated))
    return requests
