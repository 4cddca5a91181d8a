"""Reads what people say about when a schedule fires: a text, and what is given beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidSchedule
from mainspring.model.payload import quoted
from mainspring.schedule.calendar import Calendar, NamedCalendar
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mainspring.schedule.calendar import CalendarUse

CalendarsGiven = Mapping[str, Calendar] | list[str] | tuple[str, ...]

TEXTS_KEPT = 1_000
_USE = re.compile(r"(?<!\S)(?:only|not|blackout)=([^\s:]+)")
_CALENDARS_RULE = "must be a list of names of stored calendars, or a dict of names and Calendars"


def read_schedule(
    when: str | Schedule,
    *,
    calendars: CalendarsGiven | None = None,
    present: Sequence[CalendarUse] = (),
    **settings: Any,
) -> Schedule:
    """The schedule that a text and its settings say; what is given is checked, what is None is left out.

    Calendars that the text names and that are not given are stored ones, and are looked up when the schedule is made.
    `present` are those that it uses so far: it goes on with them if the text names none.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(when, Schedule):
        _refuse_beside(given if calendars is None else given | {"calendars": calendars})
        return when
    if not isinstance(when, str):
        raise _not_a_text(when)
    own = {use.calendar.name: use.calendar for use in present if not use.is_stored}
    if isinstance(calendars, Mapping):
        schedule = _read(when, given, {**own, **calendars})
        _check_used(when, calendars)
        return schedule
    return _read(_without_days_of(when, calendars), given, own)


def _read(text: str, settings: dict[str, Any], calendars: Mapping[str, Calendar]) -> Schedule:
    return _from_cache(_parsed, text, calendars=tuple(calendars.items()), **settings)


def _from_cache(read: Callable[..., Schedule], *args: Any, **settings: Any) -> Schedule:
    try:
        hash((args, *settings.values()))
    except TypeError:  # what is refused anyway
        return read.__wrapped__(*args, **settings)  # type: ignore[attr-defined, no-any-return]
    return read(*args, **settings)


# Thousands of schedules share a text, and then what is worked out from it.
@lru_cache(maxsize=TEXTS_KEPT, typed=True)
def _parsed(text: str, *, calendars: tuple[tuple[str, Calendar], ...], **settings: Any) -> Schedule:
    return parse(text, calendars=dict(calendars), stored=True, **settings)


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
