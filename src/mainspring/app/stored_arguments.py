"""Arguments that schedules keep and that the code no longer takes: their runs would become dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import InvalidArguments, JobNotFound
from mainspring.model.scheduling import ScheduleState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.app.mainspring import Mainspring
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.worker.registry import Handler

PAGE = 1_000
MOST_OF_A_JOB = 10_000  # schedules that are looked at
FIRING = (ScheduleState.ACTIVE, ScheduleState.PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfitSchedule:
    """A schedule whose arguments do not fit the signature of its job, and why."""

    name: str
    job: str
    problem: str


async def unfit_schedules(client: Mainspring) -> list[UnfitSchedule]:
    """Those of the client's own jobs, among the first schedules of each."""
    return [found for handler in client.registry async for found in _of_job(client, handler)]


async def _of_job(client: Mainspring, handler: Handler) -> AsyncIterator[UnfitSchedule]:
    after, looked_at = "", 0
    while looked_at < MOST_OF_A_JOB:
        try:
            page = await client.schedules.list(job=handler.name, states=FIRING, after=after, limit=PAGE)
        except JobNotFound:  # nobody has used it yet
            return
        for each in page:
            problem = _problem(handler, each)
            if problem is not None:
                yield UnfitSchedule(name=each.name, job=handler.name, problem=problem)
        if len(page) < PAGE:
            return
        after, looked_at = page[-1].name, looked_at + PAGE


def _problem(handler: Handler, schedule: ScheduleSummary) -> str | None:
    try:
        handler.arguments.decode(msgspec.json.encode(schedule.payload))
    except InvalidArguments as error:
        return error.message
    return None
