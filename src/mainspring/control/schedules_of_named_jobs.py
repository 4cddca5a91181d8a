"""Schedules of jobs that are given by their names, also of those that another application defines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from mainspring.clock import instant
from mainspring.control.schedule_requests import requested
from mainspring.model.options import NO_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mainspring.clock import Clock
    from mainspring.control.application import Application
    from mainspring.control.schedule_requests import ScheduleKeywords
    from mainspring.control.schedules import Schedules
    from mainspring.model.actor import Actor
    from mainspring.model.options import SubmitOptions
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.schedule.schedule import Schedule


class SchedulesOfNamedJobs:
    """Makes and replaces schedules. Arguments are checked against the job's signature if it is the application's."""

    def __init__(self, *, clock: Clock, application: Application, schedules: Schedules) -> None:
        self._clock = clock
        self._application = application
        self._schedules = schedules

    async def create(
        self,
        actor: Actor,
        name: str,
        job: str,
        when: str | Schedule,
        arguments: Mapping[str, Any] | None = None,
        *,
        options: SubmitOptions = NO_OPTIONS,
        connection: object | None = None,
        **settings: Unpack[ScheduleKeywords],
    ) -> ScheduleSummary:
        """Make a schedule of a job by its name, also of one that another application defines.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it is there if and only if you commit.
        """
        payload = self._application.encode(job, arguments or {})
        request = requested(name, job, when, payload, options, now=instant(self._clock), **settings)
        return await self._schedules.create(actor, request, connection=connection)

    async def put(
        self,
        actor: Actor,
        name: str,
        job: str,
        when: str | Schedule,
        arguments: Mapping[str, Any] | None = None,
        *,
        options: SubmitOptions = NO_OPTIONS,
        expected_version: int | None = None,
        connection: object | None = None,
        **settings: Unpack[ScheduleKeywords],
    ) -> ScheduleSummary:
        """Make a schedule, or make the one of this name what is asked for. Asked for twice, nothing more happens.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it happens if and only if you commit.
        """
        payload = self._application.encode(job, arguments or {})
        request = requested(name, job, when, payload, options, now=instant(self._clock), **settings)
        return await self._schedules.put(actor, request, expected_version=expected_version, connection=connection)
