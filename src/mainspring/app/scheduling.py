"""`app.schedules`, and `job.scheduled(…)`: schedules made at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, ParamSpec

from mainspring.app.binding import blocking, verb
from mainspring.app.collections import Collection
from mainspring.app.schedule_changes import blocking_change, change_here
from mainspring.clock import instant
from mainspring.control.backfills import Backfills
from mainspring.control.calendars import Calendars
from mainspring.control.forecast import Forecasts
from mainspring.control.schedule_batches import ScheduleBatches
from mainspring.control.schedule_lists import ScheduleLists
from mainspring.control.schedule_queries import ScheduleQueries
from mainspring.control.schedule_requests import ScheduleRequest, check_keywords, declared, requested
from mainspring.control.schedules import Schedules
from mainspring.control.schedules_of_named_jobs import SchedulesOfNamedJobs
from mainspring.errors import InvalidArguments, InvalidInput
from mainspring.model.decoration import SCHEDULE_OPTIONS
from mainspring.model.event_loop import refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mainspring.app.job import Job
    from mainspring.app.mainspring import Mainspring
    from mainspring.control.declared import DeclaredDifference
    from mainspring.control.schedule_requests import ScheduleKeywords
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.schedule.schedule import Schedule
    from mainspring.worker.registry import Handler

P = ParamSpec("P")


def declared_schedule(handler: Handler, options: Mapping[str, Any], now: datetime) -> ScheduleRequest | None:
    """The schedule that `@app.job(schedule=…)` declares: with the job's name, and without arguments."""
    given = {name: options[name] for name in SCHEDULE_OPTIONS if options.get(name) is not None}
    when = given.pop("schedule", None)
    if when is None:
        if given:
            raise InvalidInput(
                f"{min(given)} is given without a schedule.",
                code="schedule-missing",
                hint='Say when: @app.job(schedule="every day at 09:00").',
                field=min(given),
                job=handler.name,
            )
        return None
    try:
        payload = handler.arguments.encode((), {})
    except InvalidArguments as error:
        raise InvalidArguments(
            f"{handler.name} has a schedule, and cannot be called without arguments: {error.message}",
            code="schedule-needs-defaults",
            hint="Give its parameters defaults, or make schedules at run time: job.scheduled(…).create(…).",
            job=handler.name,
            field=error.fields.get("field"),
        ) from error
    return declared(handler.name, when, payload, now=now, **given)


class ScheduleCollection(Collection):
    """All schedules there are."""

    called = "app.schedules"

    find = verb(ScheduleQueries, ScheduleQueries.find)
    list = verb(ScheduleLists, ScheduleLists.list)
    page = verb(ScheduleLists, ScheduleLists.page)
    history = verb(ScheduleQueries, ScheduleQueries.history)
    preview = verb(ScheduleQueries, ScheduleQueries.preview)
    versions = verb(ScheduleQueries, ScheduleQueries.versions)
    create = verb(SchedulesOfNamedJobs, SchedulesOfNamedJobs.create)
    put = verb(SchedulesOfNamedJobs, SchedulesOfNamedJobs.put)
    create_many = verb(ScheduleBatches, ScheduleBatches.create_many)
    put_many = verb(ScheduleBatches, ScheduleBatches.put_many)
    update = verb(Schedules, Schedules.update)
    forecast = verb(Forecasts, Forecasts.forecast)
    added_load = verb(Forecasts, Forecasts.added_load)
    rollback = verb(Schedules, Schedules.rollback)
    pause = verb(Schedules, Schedules.pause)
    resume = verb(Schedules, Schedules.resume)
    delete = verb(Schedules, Schedules.delete)
    trigger = verb(Schedules, Schedules.trigger)
    backfill = verb(Backfills, Backfills.backfill)
    start_backfill = verb(Backfills, Backfills.start_backfill)

    find_sync = blocking(find)
    list_sync = blocking(list)
    page_sync = blocking(page)
    history_sync = blocking(history)
    preview_sync = blocking(preview)
    versions_sync = blocking(versions)
    create_sync = blocking_change(create)
    put_sync = blocking_change(put)
    create_many_sync = blocking_change(create_many)
    put_many_sync = blocking_change(put_many)
    update_sync = blocking_change(update)
    forecast_sync = blocking(forecast)
    added_load_sync = blocking(added_load)
    rollback_sync = blocking_change(rollback)
    pause_sync = blocking_change(pause)
    resume_sync = blocking_change(resume)
    delete_sync = blocking_change(delete)
    trigger_sync = blocking_change(trigger)
    backfill_sync = blocking(backfill)
    start_backfill_sync = blocking(start_backfill)

    async def apply(self, *, by_hand: bool = False, prune: bool = False) -> Sequence[DeclaredDifference]:
        """Let the schedules that the code declares take effect; answers how they differed from those there were.

        What another version of the code has replaced before is passed over unless this is done by hand. Schedules that
        are no longer declared are only reported; `prune` deletes them.
        """
        declared = (await self._app.services()).declared
        return await declared.apply(self._app.actor, self._app.declared, by_hand=by_hand, prune=prune)

    apply_sync = blocking(apply)


class CalendarCollection(Collection):
    """Stored calendars (holidays, blackouts), which schedules use by name: `0 9 * * * not=holidays`."""

    called = "app.calendars"

    create = verb(Calendars, Calendars.create)
    put = verb(Calendars, Calendars.put)
    import_icalendar = verb(Calendars, Calendars.import_icalendar)
    find = verb(Calendars, Calendars.find)
    list = verb(Calendars, Calendars.list)
    users = verb(Calendars, Calendars.users)
    delete = verb(Calendars, Calendars.delete)

    create_sync = blocking(create)
    put_sync = blocking(put)
    import_icalendar_sync = blocking(import_icalendar)
    find_sync = blocking(find)
    list_sync = blocking(list)
    users_sync = blocking(users)
    delete_sync = blocking(delete)


class ScheduledJob(Generic[P]):
    """A job with a name and a time: what is left to say are its arguments."""

    called = "job.scheduled"

    def __init__(self, job: Job[P, Any], name: str, when: str | Schedule, settings: ScheduleKeywords) -> None:
        check_keywords(settings)
        self._job = job
        self._name = name
        self._when = when
        self._settings = settings

    @property
    def opener(self) -> Mainspring:
        return self._job.app

    def request(self, /, *args: P.args, **kwargs: P.kwargs) -> ScheduleRequest:
        """The schedule with these arguments, checked and not made yet: for `create_many` and `put_many`."""
        return self._request(args, kwargs)

    async def create(self, /, *args: P.args, **kwargs: P.kwargs) -> ScheduleSummary:
        """Make the schedule; its name must be free. The arguments are checked against the job's signature."""
        request = self._request(args, kwargs)
        schedules = (await self.opener.services()).schedules
        return await schedules.create(self._actor, request, connection=self._job.connection)

    async def put(self, /, *args: P.args, **kwargs: P.kwargs) -> ScheduleSummary:
        """Make the schedule, or make the one of this name this one. Asked for twice, nothing more happens."""
        request = self._request(args, kwargs)
        schedules = (await self.opener.services()).schedules
        return await schedules.put(self._actor, request, connection=self._job.connection)

    def create_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> ScheduleSummary:
        """`create` for code that is not async."""
        refuse_in_event_loop("create_sync", "await job.scheduled.create(…)")
        if self._job.connection is None:
            return self.opener.blocking(self.create(*args, **kwargs))
        request = self._request(args, kwargs)
        return change_here(
            self.opener,
            self._job.connection,
            lambda services, here: services.schedules.create(self._actor, request, connection=here),
        )

    def put_sync(self, /, *args: P.args, **kwargs: P.kwargs) -> ScheduleSummary:
        """`put` for code that is not async."""
        refuse_in_event_loop("put_sync", "await job.scheduled.put(…)")
        if self._job.connection is None:
            return self.opener.blocking(self.put(*args, **kwargs))
        request = self._request(args, kwargs)
        return change_here(
            self.opener,
            self._job.connection,
            lambda services, here: services.schedules.put(self._actor, request, connection=here),
        )

    @property
    def _actor(self) -> Actor:
        return self.opener.actor

    def _request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ScheduleRequest:
        payload = self._job.handler.arguments.encode(args, kwargs)
        job, now = self._job, instant(self.opener.clock)
        return requested(self._name, job.name, self._when, payload, job.submit_options, now=now, **self._settings)
