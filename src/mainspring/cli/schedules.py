"""`mainspring schedule explain`, and what it shares with the other commands about schedules: reading and showing."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from mainspring.cli.command import Invocation, Repeatable, command
from mainspring.cli.text import as_span, safe
from mainspring.errors import InvalidInput, InvalidSchedule
from mainspring.model.payload import quoted
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.document import calendar_of
from mainspring.schedule.icalendar import MAX_BYTES, read_calendar
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse
from mainspring.schedule.timeline import EARLIEST, LATEST
from mainspring.schedule.zones import TZDATA_VERSION, in_utc, instant_of, zone_named

Zone = Annotated[str, Parameter(help="An IANA time zone, for schedules that name none.")]
From = Annotated[str | None, Parameter(name="--from", help="Instead of now: 2026-03-28, or 2026-03-28T12:00.")]
CalendarFiles = Annotated[
    tuple[str, ...],
    Repeatable,
    Parameter(name="--calendar", help="NAME=FILE (.ics or .json), for not=NAME, only=NAME and blackout=NAME."),
]
JobId = Annotated[str, Parameter(name="--job", help="The schedule's name, which decides H and the spread.")]


def moment(text: str | None, zone: str, now: datetime) -> datetime:
    """What --from says: an instant, or a date or local time in the zone; now, if nothing was typed."""
    if text is None:
        return now.replace(microsecond=0)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"--from is {quoted(text)}; it must be a date or a time in ISO 8601.",
            code="invalid-from",
            hint="Write 2026-03-28, 2026-03-28T12:00 or 2026-03-28T12:00:00Z.",
            field="from",
            value=quoted(text),
        ) from error
    instant = in_utc(at) if at.tzinfo else instant_of(zone_named(zone), at)
    if not EARLIEST <= instant < LATEST:
        message = f"--from is {quoted(text)}; it must be from the year {EARLIEST.year} on and before {LATEST.year}."
        raise InvalidInput(message, code="invalid-from", field="from", value=quoted(text))
    return instant


def until(begin: datetime, span: timedelta) -> datetime:
    """The end of a stretch of time, or of all time."""
    return begin + min(span, LATEST - begin)


def read_schedule(text: str, *, zone: str, now: datetime, calendars: dict[str, Calendar], job: str = "") -> Schedule:
    return parse(text, zone=zone, now=now, calendars=calendars, job=job)


def read_words(
    words: Sequence[str], *, zone: str, now: datetime, calendars: dict[str, Calendar], job: str = ""
) -> Schedule:
    """A schedule that was typed in one or several words."""
    try:
        return read_schedule(" ".join(words), zone=zone, now=now, calendars=calendars, job=job)
    except InvalidSchedule as error:
        if _are_file_names(words, at_least=1 if error.code == "invalid-cron" else 2):
            error.hint = "Put the schedule in quotes: the shell replaced * by file names."
        raise


def _are_file_names(words: Sequence[str], at_least: int) -> bool:
    return len(words) > 1 and sum(map(os.path.exists, words)) >= at_least


def read_calendars(pairs: Sequence[str], *, zone: str, now: datetime, invocation: Invocation) -> dict[str, Calendar]:
    """The calendars of NAME=FILE pairs."""
    found = {}
    for pair in pairs:
        name, sign, path = pair.partition("=")
        if not sign or not name or not path:
            raise _invalid_calendar(pair, "must have the form NAME=FILE", "For example: --calendar holidays=de.ics")
        found[name] = _read_calendar(name, path, zone, now, invocation)
    return found


def _read_calendar(name: str, path: str, zone: str, now: datetime, invocation: Invocation) -> Calendar:
    data = read_bytes(path, MAX_BYTES + 1, "calendar")
    if path.endswith(".json"):
        return calendar_of({"name": name} | read_document(data, path))
    imported = read_calendar(data, name=name, since=now.date(), zone=zone)
    for reason in imported.left_out:
        invocation.say(f"{path}: left out {reason}")
    return imported.calendar


def read_document(data: bytes, path: str) -> dict[str, Any]:
    """A calendar as JSON, with or without its name."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise _invalid_calendar(path, "must be a JSON object", 'For example: {"yearly": ["12-25"]}') from error


def read_bytes(path: str, limit: int, option: str) -> bytes:
    """The beginning of a file, up to a limit."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(
            f"{quoted(path)} cannot be read: {reason}.", code="file-not-readable", field=option, value=quoted(path)
        ) from error


def _invalid_calendar(value: str, rule: str, hint: str) -> InvalidInput:
    message = f"--calendar is {quoted(value)}; it {rule}."
    return InvalidInput(message, code="invalid-calendar", hint=hint, field="calendar", value=quoted(value), rule=rule)


# ── showing instants ────────────────────────────────────────────────────────────────────────────────────────


def as_local(at: datetime, *, seconds: bool = False) -> str:
    """`Tue 17 Nov 2026 09:00 CET`; zones without letters have their offset."""
    clock = f"{at:%H:%M:%S}" if seconds else f"{at:%H:%M}"
    return f"{at:%a} {at.day:2} {at:%b %Y} {clock} {at.tzname()}"


def as_utc(at: datetime, *, seconds: bool = False) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z" if seconds else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def as_stamp(at: datetime) -> str:
    """For programs."""
    return at.isoformat().replace("+00:00", "Z")


@command("explain")
def explain(
    *text: Annotated[str, Parameter(help="The schedule, in one or several words.", required=True)],
    zone: Zone = "UTC",
    from_: From = None,
    calendar: CalendarFiles = (),
    job: JobId = "",
    invocation: Invocation,
) -> None:
    """Say what a schedule means.

    A schedule is a cron expression, an interval, one or several instants, a
    recurrence rule, plain English, or a union of these. Quote what the shell
    would read, such as *.

    Examples:
      mainspring schedule explain '*/15 8-17 * * MON-FRI'
      mainspring schedule explain last friday of the month at 18:00
      mainspring schedule explain '0 9 * * * not=off' --calendar off=holidays.ics
      mainspring schedule explain 'RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU' -o json
    """
    now = moment(from_, zone, invocation.now)
    calendars = read_calendars(calendar, zone=zone, now=now, invocation=invocation)
    schedule = read_words(text, zone=zone, now=now, calendars=calendars, job=job)
    following = schedule.next_after(now, job=job)
    if invocation.wants_json:
        invocation.print_json(
            {
                "text": schedule.text,
                "words": schedule.words,
                "schedule": schedule.as_document(),
                "next_at": None if following is None else as_stamp(following.due_at),
                "tzdata": TZDATA_VERSION,
            }
        )
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("schedule", Text(safe(schedule.text), style="bold"))
    table.add_row("in words", Text(safe(schedule.words)))
    if following is None:
        table.add_row("next", Text("never again", style="yellow"))
    else:
        local = following.due_at.astimezone(schedule.zone_info)
        table.add_row("next", f"{as_local(local)}, in {as_span((following.due_at - now).total_seconds())}")
        if schedule.zone != "UTC":
            table.add_row("", f"{as_utc(following.due_at)}")
    invocation.print(table)
