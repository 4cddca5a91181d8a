"""Schedules from text: one way to read all forms. `canonical.py` writes them.

    0 9 * * 1-5 zone=Europe/Berlin gap=skip spread=PT5M not=holidays
    PT15M/2026-01-01T00:00:00Z | 0 12 * * 0
    (0 9 * * * | 0 17 * * *) but not 0 9 1 1 *

First comes when, then settings as `key=value`. Calendars go by name: whoever reads has to know them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import (
    BlackoutPolicy,
    Calendar,
    CalendarUse,
    NamedCalendar,
    Use,
    unknown_calendar,
)
from mainspring.schedule.cron_zones import without_zones
from mainspring.schedule.faults import broken_rule, fault
from mainspring.schedule.instants import read_instant
from mainspring.schedule.interval import read_elapsed, span_text
from mainspring.schedule.offers import nothing_shown, show_offers
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.schedule_checks import check_spread
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy
from mainspring.schedule.when_text import read_when
from mainspring.schedule.zones import zone_named

if TYPE_CHECKING:
    from mainspring.schedule.sets import When


MAX_LENGTH = 10_000
KEYS = ("zone", "gap", "repeat", "starts", "ends", "runs", "spread", "only", "not", "blackout")
_CALENDARS = "must be a dict of names and Calendars"
SAID_ONCE = ("starts_at", "ends_at", "max_runs", "spread")
_ALONE = re.compile(r"\s*([A-Za-z_]+)=\S*\s*")
_SETTING = re.compile(r"(?:^|\s)([a-z]+)=(\S+)\s*$")


class _Setting(NamedTuple):
    key: str
    value: str
    position: int


def parse(
    text: str,
    *,
    zone: str = "UTC",
    gap: GapPolicy = GapPolicy.AS_CRON,
    repeat: RepeatPolicy = RepeatPolicy.AS_CRON,
    calendars: Mapping[str, Calendar] | None = None,
    stored: bool = False,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    max_runs: int | None = None,
    spread: timedelta | str | None = None,
    anchor: datetime | None = None,
    now: datetime | None = None,
    job: str = "",
    defaults: Mapping[str, Any] | None = None,
) -> Schedule:
    """The schedule a text says. The arguments say what it is when the text does not. One that never fires is refused.

    Bounds and spread that are said twice have to agree; what is in `defaults` holds where nobody says anything.

    `anchor` is for intervals without one. `now` is for plain English that speaks of today or tomorrow. `job` is the id
    of the job that will run: with H, bounds and calendars one job may fire where another never does. With `stored`,
    calendars that are not given are stored ones: whether it ever fires is known when they have been looked up.
    """
    options: dict[str, Any] = {"zone": zone, "gap": gap, "repeat": repeat, "starts_at": starts_at, "ends_at": ends_at}
    options |= {"max_runs": max_runs, "spread": None if spread is None else read_elapsed(spread, "spread")}
    given = {field: options[field] for field in SAID_ONCE if options[field] is not None}
    options |= {field: value for field, value in (defaults or {}).items() if field not in given}
    reader = _TextReader(options, given, _Known(_checked(calendars), stored), anchor, now, job)
    try:
        return reader.read(text)
    except InvalidSchedule as error:
        show_offers(error, reader.if_good)
        raise


class _Known(NamedTuple):
    """The calendars that were given, and whether others are stored ones."""

    calendars: Mapping[str, Calendar]
    stored: bool


class _TextReader:
    """Reads a text, and what might be offered instead of it, with the same arguments."""

    def __init__(
        self,
        options: dict[str, Any],
        given: dict[str, Any],
        known: _Known,
        anchor: datetime | None,
        now: datetime | None,
        job: str,
    ) -> None:
        self._options, self._given, self._known = options, given, known
        self._anchor, self._now, self._job = anchor, now, job

    def read(self, text: str, *, is_offer: bool = False) -> Schedule:
        when_text, settings = _split(text)
        own = _options(text, settings, self._known, self._options["zone"])
        options = self._options | own
        _check_agreement(text, own, self._given, "as an argument")

        def shown(offer: str) -> str | None:
            before = len(when_text) - len(when_text.lstrip())  # a zone in front, perhaps
            return self.if_good(text[:before] + offer[before:] + text[len(when_text) :])

        when = read_when(
            when_text,
            zone_named(options["zone"]),
            anchor=self._anchor,
            now=self._now,
            shown=nothing_shown if is_offer else shown,
        )
        for each in settings:
            if isinstance(when, Schedule) and each.key == "zone" and each.value != when.zone:
                raise _two_zones(text, each, when.zone)
        if isinstance(when, Schedule):
            words = {field: getattr(when, field) for field in SAID_ONCE if getattr(when, field) is not None}
            _check_agreement(text, words, own, "as a setting")
            _check_agreement(text, words, self._given, "as an argument")
        return fired(_put_together(when, options), self._job)

    def if_good(self, offer: str) -> str | None:
        """The offer itself, if it is a schedule, and not over."""
        try:
            schedule = self.read(offer, is_offer=True)
            is_over = self._now is not None and schedule.next_after(self._now, job=self._job) is None
        except InvalidSchedule:
            return None
        return None if is_over else offer


def _check_agreement(text: str, said: Mapping[str, Any], other: Mapping[str, Any], where: str) -> None:
    """Refuse what a text says in one way and something else says in another."""
    for field in (field for field in SAID_ONCE if field in said and field in other):
        if said[field] != other[field]:
            one, two = (_written(value[field]) for value in (said, other))
            hint = f"Say it once, or both times the same: {_key(field)}= in the text, {field}= beside it."
            raise broken_rule(
                field, one, f"is said twice, and {where} it is {two}", code="contradictory-settings", hint=hint
            )


def _key(field: str) -> str:
    """What a field is called in a text."""
    return "runs" if field == "max_runs" else field.removesuffix("_at")


def _written(value: object) -> str:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case timedelta():
            return span_text(elapsed=value)
        case _:
            return str(value)


def fired(schedule: Schedule, job: str = "") -> Schedule:
    """The schedule itself, if there is an instant at which it fires for the job, or its calendars are not known yet.

    A spread that cannot be asked for any more is refused as well; what is stored is not asked.
    """
    check_spread(schedule.spread)
    if any(isinstance(use.calendar, NamedCalendar) for use in schedule.calendars):
        return schedule
    reason = schedule.why_never(job=job)
    if reason is None:
        return schedule
    raise InvalidSchedule(
        f"The schedule never fires: {reason.words}.",
        code="never-fires",
        hint=reason.remedy,
        field="schedule",
        rule=reason.words,
    )


def _put_together(when: When | Schedule, options: dict[str, Any]) -> Schedule:
    if not isinstance(when, Schedule):
        return Schedule(when=when, **options)
    plain = Schedule(when=when.when)  # plain English may name zone and bounds too; what it does not name is as given
    # The zone is the one that was named, be it UTC, or else the one that was given.
    named = ["zone", *(field for field in options if getattr(when, field) != getattr(plain, field))]
    return replace(plain, **{**options, **{field: getattr(when, field) for field in named}})


def _split(text: object) -> tuple[str, list[_Setting]]:
    """When, and the settings after it, last one first."""
    if not isinstance(text, str):
        raise broken_rule("schedule", text, "must be a text")
    if len(text) > MAX_LENGTH:
        raise fault(text, MAX_LENGTH, f"a schedule has at most {MAX_LENGTH:,} characters", code="schedule-too-large")
    settings = []
    when = text
    while (match := _SETTING.search(when)) and match.start():
        settings.append(_Setting(match[1], match[2], match.start(1)))
        when = when[: match.start()]
    if (alone := _ALONE.fullmatch(when)) and alone[1] in (*KEYS, "TZ", "CRON_TZ"):
        problem = "it has a setting, and does not say when"
        raise fault(text, 0, problem, allowed="when, and settings after it, as in '0 9 * * * zone=Europe/Berlin'")
    when, zones = without_zones(when)
    for zone in zones:
        settings = _with_zone(text, settings, _Setting("zone", zone.name, zone.position))
    return when, settings


def _with_zone(text: str, settings: list[_Setting], zone: _Setting) -> list[_Setting]:
    given = next((each.value for each in settings if each.key == "zone"), zone.value)
    if given != zone.value:
        raise _two_zones(text, zone, given)
    return [zone, *(each for each in settings if each.key != "zone")]


def _two_zones(text: str, zone: _Setting, other: str) -> InvalidSchedule:
    problem = f"it names two zones, {zone.value} and {other}"
    return fault(text, zone.position, problem, allowed="one zone for all of it", code="contradictory-zones")


def _checked(calendars: object) -> Mapping[str, Calendar]:
    if calendars is None:
        return {}
    if not isinstance(calendars, Mapping):
        raise broken_rule("calendars", calendars, _CALENDARS, code="invalid-calendars")
    for name, calendar in calendars.items():
        if not isinstance(name, str) or not isinstance(calendar, Calendar):
            raise broken_rule("calendars", {name: calendar}, _CALENDARS, code="invalid-calendars")
    return calendars


def _options(text: str, settings: list[_Setting], known: _Known, zone: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    uses: list[CalendarUse] = []
    zone = next((each.value for each in settings if each.key == "zone"), zone)
    for each in reversed(settings):
        if each.key in ("only", "not", "blackout"):
            uses.append(_use(text, each, known))
            continue
        field, value = _option(text, each, zone)
        if field in options:
            raise fault(text, each.position, f"{each.key} is given twice")
        options[field] = value
    return options | {"calendars": tuple(uses)} if uses else options


def _option(text: str, setting: _Setting, zone: str) -> tuple[str, object]:
    value = setting.value
    match setting.key:
        case "zone":
            return "zone", value
        case "gap" | "repeat":
            return setting.key, _policy(text, setting)
        case "starts" | "ends":
            at = setting.position + len(setting.key) + 1
            return f"{setting.key}_at", read_instant(text, at, value, zone_named(zone))
        case "runs" if value.isascii() and value.isdigit() and len(value) < 10:
            return "max_runs", int(value)
        case "spread":
            return "spread", read_elapsed(value, "spread")
        case _:
            problem = f"{setting.key}={value[:30]} is no setting"
            raise fault(text, setting.position, problem, allowed=", ".join(f"{key}=" for key in KEYS))


def _policy(text: str, setting: _Setting) -> GapPolicy | RepeatPolicy:
    policies = GapPolicy if setting.key == "gap" else RepeatPolicy
    try:
        return policies(setting.value)
    except ValueError:
        allowed = ", ".join(each.value for each in policies)
        at = setting.position + len(setting.key) + 1
        raise fault(text, at, f"{setting.value[:30]!r} is no policy", allowed=allowed) from None


def _use(text: str, setting: _Setting, known: _Known) -> CalendarUse:
    name, colon, policy = setting.value.partition(":")
    is_stored = known.stored and name not in known.calendars
    if not is_stored and name not in known.calendars:
        raise unknown_calendar(name, known.calendars)
    calendar = NamedCalendar(name=name) if is_stored else known.calendars[name]
    if setting.key != "blackout":
        use = Use.INCLUDE if setting.key == "only" else Use.EXCLUDE
        return CalendarUse(calendar=calendar, use=use, is_stored=is_stored)
    if policy not in ("", *BlackoutPolicy):
        at = setting.position + len(setting.key) + 1 + len(name) + len(colon)
        raise fault(text, at, f"{policy[:30]!r} is no policy", allowed=", ".join(BlackoutPolicy))
    then = BlackoutPolicy(policy or "drop")
    return CalendarUse(calendar=calendar, use=Use.BLACKOUT, then=then, is_stored=is_stored)
