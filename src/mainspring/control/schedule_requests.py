"""What is asked for when a schedule is made: checked before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from mainspring.control.schedule_texts import read_declared, read_schedule
from mainspring.errors import InvalidInput, InvalidSchedule, did_you_mean
from mainspring.model.job import checked_name
from mainspring.model.options import NO_OPTIONS, SubmitKeywords
from mainspring.model.payload import JSON_CODEC
from mainspring.schedule.deciding import CatchUp, CatchUpRule, OverlapPolicy, checked_failures, checked_overlap
from mainspring.store.schedules import Content

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from mainspring.control.schedule_texts import CalendarsGiven, ScheduleText
    from mainspring.model.options import SubmitOptions
    from mainspring.schedule.schedule import Occurrence, Schedule


class ScheduleKeywords(TypedDict, total=False):
    """How a schedule may be described besides its text, for calls that pass it on."""

    zone: str
    spread: timedelta | None
    starts_at: datetime | None
    ends_at: datetime | None
    max_runs: int | None
    calendars: CalendarsGiven | None  # by the names that the text gives them; or names of stored ones to leave out
    catch_up: CatchUp | CatchUpRule | str
    overlap: OverlapPolicy | str
    pause_after_failures: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """A schedule as it shall be."""

    name: str
    job: str
    schedule: Schedule
    payload: bytes
    options: SubmitOptions = NO_OPTIONS
    catch_up: CatchUp = field(default_factory=CatchUp)
    overlap: OverlapPolicy = OverlapPolicy.ALLOW
    pause_after_failures: int | None = None  # so many in a row
    is_declared: bool = False
    read_at: datetime | None = None  # what now was, where the text counts from it
    said: ScheduleText | None = field(default=None, compare=False, repr=False)  # the text that does

    def __post_init__(self) -> None:
        checked_name(self.name, "name")
        for option in ("at", "delay", "key", "unique", "debounce", "after", "child"):
            if getattr(self.options, option) is not None:
                raise InvalidInput(
                    f"{option} is given; a schedule says itself when its runs are due, and there are many of them.",
                    code="not-for-schedules",
                    hint="Leave it out; for one run at one time, submit it.",
                    field=option,
                )

    def first_after(self, now: datetime, resolved: Schedule | None = None) -> Occurrence:
        """Its first instant; refuses a schedule that is over. `resolved`: with what is in its stored calendars."""
        first = (resolved or self.schedule).next_after(now, job=self.name)
        if first is None:
            raise InvalidSchedule(
                f"{self.schedule.text!r} has no instant after {now:%Y-%m-%d %H:%M:%S}Z: it is over.",
                code="schedule-over",
                hint="Give a time that is still to come.",
                field="schedule",
                value=self.schedule.text,
            )
        return first

    @property
    def spec(self) -> str:
        """When it fires, as a row keeps it."""
        return msgspec.json.encode(self.schedule.as_document()).decode()

    def content(self, job_id: int) -> Content:
        """As a row keeps it. Equal schedules have equal contents."""
        document = self.options.as_document()
        tags = document.pop("tags", None)
        return Content(
            job=job_id,
            spec=self.spec,
            codec=JSON_CODEC,
            payload=self.payload,
            options=msgspec.json.encode(document, order="sorted").decode(),
            tags=None if tags is None else list(tags),
            catch_up=self.catch_up.rule.value,
            catch_up_seconds=self.catch_up.window.total_seconds(),
            is_declared=self.is_declared,
            calendars=list(self.schedule.stored_calendars) or None,
            read_at=self.read_at,
            overlap=self.overlap.value,
            pause_after_failures=self.pause_after_failures,
        )


def requested(
    name: str,
    job: str,
    when: str | Schedule,
    payload: bytes,
    options: SubmitOptions = NO_OPTIONS,
    *,
    now: datetime,
    **settings: Unpack[ScheduleKeywords],
) -> ScheduleRequest:
    """A request as people say it. What its text counts from now is counted from `now`."""
    check_keywords(settings)
    rules = _read_rules(settings)
    read = read_schedule(when, now=now, **settings)
    return ScheduleRequest(name=name, job=job, payload=payload, options=options, **rules, **read._asdict())


def declared(
    job: str, when: str | Schedule, payload: bytes, *, now: datetime, **settings: Unpack[ScheduleKeywords]
) -> ScheduleRequest:
    """The schedule of a job that stands in code beside it, and has its name."""
    rules = _read_rules(settings)
    schedule = read_declared(when, now=now, **settings)
    return ScheduleRequest(name=job, job=job, payload=payload, schedule=schedule, is_declared=True, **rules)


def _read_rules(settings: ScheduleKeywords) -> dict[str, Any]:
    """Take out what does not say when it fires, but what happens then."""
    return {
        "catch_up": read_catch_up(settings.pop("catch_up", None)),
        "overlap": checked_overlap(settings.pop("overlap", None)),
        "pause_after_failures": checked_failures(settings.pop("pause_after_failures", None)),
    }


def check_keywords(given: Iterable[str]) -> None:
    """Refuse what is no keyword of schedules, and say where it goes."""
    for name in given:
        if name in ScheduleKeywords.__annotations__:
            continue
        is_option = name in SubmitKeywords.__annotations__
        meant = f"It is an option of runs: job.options({name}=…).scheduled(…)."
        raise InvalidInput(
            f"Schedules have no keyword {name!r}.",
            code="unknown-option",
            hint=meant if is_option else did_you_mean(name, ScheduleKeywords.__annotations__),
            field=name,
        )


def read_catch_up(given: CatchUp | CatchUpRule | str | None) -> CatchUp:
    if given is None:
        return CatchUp()
    return given if isinstance(given, CatchUp) else CatchUp(rule=given)  # type: ignore[arg-type]  # it is checked there
