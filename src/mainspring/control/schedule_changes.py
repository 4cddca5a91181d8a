"""Single changes of a schedule: what is given is changed, what is not given stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mainspring.control.schedule_requests import ScheduleKeywords
from mainspring.control.schedule_texts import ReadSchedule, read_schedule
from mainspring.errors import InvalidInput
from mainspring.model.options import SubmitKeywords, SubmitOptions
from mainspring.schedule.deciding import CatchUp, checked_failures, checked_overlap
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import fired

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.control.application import Application
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedule_texts import CalendarsGiven

# What a text leaves open stays as it is; so does what is not a matter of time.
_OF_TIME = ("zone", "gap", "repeat", "starts_at", "ends_at", "max_runs", "spread")
_OPTIONS = tuple(SubmitKeywords.__annotations__)
_OVERRIDES = ("retry", "timeout", "run_timeout")


class ScheduleChanges(ScheduleKeywords, SubmitKeywords, total=False):
    """What may be changed of a schedule. None takes away what a schedule, or its runs, can be without."""

    when: str | Schedule
    arguments: Mapping[str, Any]  # all of them


def check_changes(changes: Mapping[str, Any]) -> None:
    unknown = changes.keys() - ScheduleChanges.__annotations__.keys()
    if unknown:
        raise TypeError(f"update() got an unexpected keyword argument {min(unknown)!r}")
    if not changes:
        raise InvalidInput(
            "Nothing is given that shall change.",
            code="nothing-to-change",
            hint='Give what shall be different: update("nightly", when="every day at 03:00").',
            field="changes",
        )
    checked_overlap(changes.get("overlap"))
    checked_failures(changes.get("pause_after_failures"))


def changed(
    present: ScheduleRequest, changes: Mapping[str, Any], application: Application, now: datetime
) -> ScheduleRequest:
    """What is asked for, with these changes. `now` is for English that speaks of tomorrow."""
    payload = present.payload
    if "arguments" in changes:
        payload = application.encode(present.job, changes["arguments"])
    read = _schedule(present, {name: changes[name] for name in _timing(changes)}, now)
    return replace(
        present,
        **read._asdict(),
        payload=payload,
        options=_options(present.options, {name: changes[name] for name in _OPTIONS if name in changes}),
        catch_up=_catch_up(present.catch_up, changes),
        overlap=checked_overlap(changes.get("overlap", present.overlap)),
        pause_after_failures=checked_failures(changes.get("pause_after_failures", present.pause_after_failures)),
    )


def _timing(changes: Mapping[str, Any]) -> list[str]:
    return [name for name in ("when", "calendars", *_OF_TIME) if name in changes]


def _schedule(present: ScheduleRequest, given: dict[str, Any], now: datetime) -> ReadSchedule:
    schedule = present.schedule
    if "when" in given:
        return _read(present, given, now)
    if "calendars" in given:
        schedule = _with_calendars(schedule, given.pop("calendars"), now)
    return ReadSchedule(fired(replace(schedule, **given), present.name) if given else schedule, present.read_at)


def _read(present: ScheduleRequest, given: dict[str, Any], now: datetime) -> ReadSchedule:
    """Another text. What it leaves open stays as it is."""
    when, schedule = given.pop("when"), present.schedule
    if isinstance(when, Schedule):
        return read_schedule(when, now=now, **given)  # which refuses what is given beside it
    kept = tuple((name, getattr(schedule, name)) for name in _OF_TIME if name not in given)
    uses = () if "calendars" in given and given["calendars"] is None else schedule.calendars
    return read_schedule(when, now=now, uses=uses, job=present.name, defaults=kept, **given)


def _with_calendars(schedule: Schedule, calendars: CalendarsGiven | None, now: datetime) -> Schedule:
    """Other contents of the calendars that it names; or, by their names or None, other calendars than those."""
    kept = schedule if isinstance(calendars, Mapping) else replace(schedule, calendars=())
    return read_schedule(kept.text, now=now, calendars=calendars, uses=kept.calendars).schedule


def _options(present: SubmitOptions, given: dict[str, Any]) -> SubmitOptions:
    checked = SubmitOptions.checked(**given)
    own = {name: getattr(checked, name) for name in given if name not in _OVERRIDES}
    overrides = {name: getattr(checked.overrides, name) for name in given if name in _OVERRIDES}
    return replace(present, **own, overrides=replace(present.overrides, **overrides))


def _catch_up(present: CatchUp, changes: Mapping[str, Any]) -> CatchUp:
    given = changes.get("catch_up", present)
    return given if isinstance(given, CatchUp) else replace(present, rule=given)
