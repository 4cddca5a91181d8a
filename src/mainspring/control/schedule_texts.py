"""Reads what people say about when a schedule fires: a text, and what is given beside it.

Some texts count from now: `every 45 minutes`, `every other tuesday at noon`, `tomorrow at 9am`. At run time that is
when they are read. What stands in code is read by every process that starts, and has to mean the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import InvalidSchedule
from mainspring.model.payload import quoted
from mainspring.schedule.calendar import Calendar, NamedCalendar
from mainspring.schedule.interval import DEFAULT_ANCHOR, Interval
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.schedule_checks import check_spread
from mainspring.schedule.sets import forms_of
from mainspring.schedule.text import fired, parse
from mainspring.schedule.timeline import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.schedule.calendar import CalendarUse
    from mainspring.schedule.schedule import Occurrence

CalendarsGiven = Mapping[str, Calendar] | list[str] | tuple[str, ...]

TEXTS_KEPT = 1_000
COMPARED = 10  # instants, of two ways to say the same
COUNTED_FROM = DEFAULT_ANCHOR.replace(tzinfo=UTC)  # what stands in code, as `PT45M` without an anchor is
_USE = re.compile(r"(?<!\S)(?:only|not|blackout)=([^\s:]+)")
_CALENDARS_RULE = "must be a list of names of stored calendars, or a dict of names and Calendars"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleText:
    """A text with all that was given beside it. Calendars that it names and that are not given are stored ones."""

    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    calendars: Mapping[str, Calendar] = field(default_factory=dict)
    uses: tuple[CalendarUse, ...] = ()  # of calendars, if the text names none

    def at(self, now: datetime) -> Schedule:
        """What it says when it is read at this instant."""
        return self._with_uses(_from_cache(_parsed, self.text, **self._given, now=now))

    def always(self) -> Schedule | None:
        """What it says whenever it is read; None if it counts from now, or says nothing at all."""
        schedule = _from_cache(_timeless, self.text, **self._given)
        return None if schedule is None else self._with_uses(schedule)

    @property
    def _given(self) -> dict[str, Any]:
        return {**self.settings, "calendars": tuple(self.calendars.items())}

    def _with_uses(self, schedule: Schedule) -> Schedule:
        if schedule.calendars or not self.uses:
            return schedule
        return fired(replace(schedule, calendars=self.uses), self.settings.get("job", ""))


class ReadSchedule(NamedTuple):
    """What a text says; and of one that counts from now, what now was, and how to read it at another time."""

    schedule: Schedule
    read_at: datetime | None = None
    said: ScheduleText | None = None


def read_schedule(
    when: str | Schedule,
    *,
    now: datetime,
    calendars: CalendarsGiven | None = None,
    uses: tuple[CalendarUse, ...] = (),
    **settings: Any,
) -> ReadSchedule:
    """The schedule that a text and its settings say; what is given is checked, what is None is left out.

    `uses` are the calendars that it uses so far: it goes on with them if the text names none.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(when, Schedule):
        _refuse_beside(given if calendars is None else given | {"calendars": calendars})
        check_spread(when.spread)
        return ReadSchedule(when)
    read = _read(_text(when, given, calendars, uses), now)
    if isinstance(calendars, Mapping):
        _check_used(when, calendars)
    return read


def _read(said: ScheduleText, now: datetime) -> ReadSchedule:
    always = said.always()
    if always is not None:
        return ReadSchedule(always)
    read_at = now.replace(microsecond=0)  # what is asked for in one second is the same, and is worked out once
    return ReadSchedule(said.at(read_at), read_at, said)


def read_declared(
    when: str | Schedule, *, now: datetime, starts_at: datetime | None = None, **settings: Any
) -> Schedule:
    """The schedule that stands in code: the same whenever it is read, or refused.

    Steps count from where those of intervals without an anchor do; with `starts_at`, everything counts from there.
    """
    schedule, read_at, said = read_schedule(when, now=now, starts_at=starts_at, **settings)
    if read_at is None or said is None:
        return schedule
    if starts_at is not None:
        return said.at(starts_at)
    with suppress(InvalidSchedule):  # today's time of day may be over
        fixed = said.at(COUNTED_FROM)
        if _moving(fixed) == _moving(schedule):
            return fixed
    raise _counts_from_now(said, schedule, read_at)


def _moving(schedule: Schedule) -> tuple[object, ...]:
    """All that may depend on when a text was read, but the anchors of intervals."""
    forms = [form.text for form in forms_of(schedule.when) if not isinstance(form, Interval)]
    return forms, schedule.starts_at, schedule.ends_at


def _text(
    when: object, settings: dict[str, Any], calendars: CalendarsGiven | None, uses: tuple[CalendarUse, ...]
) -> ScheduleText:
    if not isinstance(when, str):
        raise _not_a_text(when)
    own = {use.calendar.name: use.calendar for use in uses if not use.is_stored}
    if not isinstance(calendars, Mapping):
        return ScheduleText(text=_without_days_of(when, calendars), settings=settings, calendars=own, uses=uses)
    return ScheduleText(text=when, settings=settings, calendars={**own, **calendars}, uses=uses)


def _from_cache(read: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    try:
        hash((args, *settings.values()))
    except TypeError:  # what is refused anyway
        return read.__wrapped__(*args, **settings)  # type: ignore[attr-defined]
    return read(*args, **settings)


# Thousands of schedules share a text, and then what is worked out from it.
@lru_cache(maxsize=TEXTS_KEPT, typed=True)
def _parsed(
    text: str,
    *,
    calendars: tuple[tuple[str, Calendar], ...],
    defaults: tuple[tuple[str, Any], ...] = (),
    **settings: Any,
) -> Schedule:
    return parse(text, calendars=dict(calendars), defaults=dict(defaults), stored=True, **settings)


@lru_cache(maxsize=TEXTS_KEPT, typed=True)
def _timeless(text: str, **settings: Any) -> Schedule | None:
    try:
        return _parsed.__wrapped__(text, **settings)
    except InvalidSchedule as error:
        if error.code != "invalid-english":
            raise
        return None


def _counts_from_now(said: ScheduleText, schedule: Schedule, now: datetime) -> InvalidSchedule:
    instead = repr(_dated(said, schedule, now))
    return InvalidSchedule(
        f"{quoted(said.text)} counts from now, and what stands in code is read anew whenever a process starts.",
        code="counts-from-now",
        hint=f"Write what it means now: {instead}. Or make it at run time: job.scheduled(…).put(…).",
        field="schedule",
        value=quoted(said.text),
        rule="must mean the same whenever it is read",
    )


def _dated(said: ScheduleText, schedule: Schedule, now: datetime) -> str:
    """What a text says today, in a form that stays: as a sentence, or else in the canonical form."""
    coming = [] if schedule.stored_calendars else _coming(schedule, now)
    if not coming:
        return schedule.text
    dated = f"{said.text} starting {coming[0].nominal_at.astimezone(schedule.zone_info):%Y-%m-%d}"
    always = replace(said, text=dated).always()
    return schedule.text if always is None or _coming(always, now) != coming else dated


def _coming(schedule: Schedule, now: datetime) -> list[Occurrence]:
    return list(islice(schedule.between(now, LATEST), COMPARED))


def _refuse_beside(given: Mapping[str, object]) -> None:
    if given:
        raise InvalidSchedule(
            f"{', '.join(sorted(given))} is given beside a Schedule, which says all of that itself.",
            code="schedule-and-settings",
            hint="Put it into the Schedule, or give a text.",
            field=min(given),
        )


def _not_a_text(when: object) -> InvalidSchedule:
    text = quoted(when.isoformat()) if isinstance(when, datetime) else '"every day at 09:00"'
    return InvalidSchedule(
        f"schedule is {quoted(when)}; it must be a text, or a Schedule.",
        hint=f"Write it as a text: {text}.",
        field="schedule",
        value=quoted(when),
        rule="must be a text, or a Schedule",
    )


# ── calendars ───────────────────────────────────────────────────────────────────────────────────────────────────


def _without_days_of(text: str, calendars: object) -> str:
    """The text that does not fire within these stored calendars: as if it said `not=NAME` of each of them."""
    if calendars is None:
        return text
    if not isinstance(calendars, list | tuple) or not all(isinstance(name, str) for name in calendars):
        raise _not_calendars(calendars)
    said = str(text).split()
    return " ".join([text, *(f"not={_checked_name(name)}" for name in calendars if f"not={name}" not in said)])


def _check_used(text: str, calendars: Mapping[str, Calendar]) -> None:
    """Refuse a calendar that the text does not name: it would be without effect."""
    used = {match[1] for match in _USE.finditer(text)}
    for name in calendars:
        if name not in used:
            raise InvalidSchedule(
                f"calendars has {name!r}, which the text does not name: it would be without effect.",
                code="calendar-not-used",
                hint=f"Write what is done with it into the text: not={name}, only={name} or blackout={name}.",
                field="calendars",
                value=name,
                rule="must be named by the text",
            )


def _checked_name(name: str) -> str:
    return NamedCalendar(name=name).name


def _not_calendars(value: object) -> InvalidSchedule:
    return InvalidSchedule(
        f"calendars is {quoted(value)}; it {_CALENDARS_RULE}.",
        code="invalid-calendars",
        hint='calendars=["holidays"] leaves out the days of the stored calendar holidays.',
        field="calendars",
        value=quoted(value),
        rule=_CALENDARS_RULE,
    )
