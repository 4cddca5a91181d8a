"""`mainspring calendar`: holidays and blackouts that schedules share by name."""

from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.bulk import confirm
from mainspring.cli.command import Flag, Invocation, Repeatable, command
from mainspring.cli.schedule_show import Facts, facts
from mainspring.cli.schedules import Zone, read_bytes, read_document
from mainspring.cli.tables import Column, ago, fitted
from mainspring.cli.text import as_instant, counted, safe
from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted
from mainspring.model.scheduling import CalendarSummary
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.document import calendar_of
from mainspring.schedule.icalendar import MAX_BYTES

T = TypeVar("T")

Name = Annotated[str, Parameter(help="The calendar's name.")]
ExpectedVersion = Annotated[int | None, Parameter(help="Only if this is its version.")]
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
KINDS = {"dates": "date", "ranges": "range", "yearly": "yearly day", "weekdays": "weekday", "windows": "window"}
COLUMNS = (
    Column("calendar", least=14),
    Column("days", least=20),
    Column("used by", least=14),
    Column("version", is_number=True, leave_out=2),
    Column("changed", leave_out=1),
)


@command("create")
async def create(
    name: Name,
    /,
    *,
    date: Annotated[tuple[str, ...], Repeatable, Parameter(help="A day: 2026-12-24.")] = (),
    range_: Annotated[
        tuple[str, ...], Repeatable, Parameter(name="--range", help="From a day to another: 2026-12-24..2027-01-01.")
    ] = (),
    yearly: Annotated[tuple[str, ...], Repeatable, Parameter(help="A day of every year: 12-25.")] = (),
    weekday: Annotated[tuple[str, ...], Repeatable, Parameter(help="A day of every week: sat.")] = (),
    window: Annotated[tuple[str, ...], Repeatable, Parameter(help="Only these hours of its days: 22:00-06:00.")] = (),
    file: Annotated[str | None, Parameter(help='A JSON document with more of it: {"yearly": ["12-25"]}.')] = None,
    replace: Annotated[bool, Flag, Parameter(help="Replace the calendar of this name, if there is one.")] = False,
    expected_version: ExpectedVersion = None,
    invocation: Invocation,
) -> None:
    """Store a calendar: days, or hours of days, that schedules name.

    A schedule says what it does with it: not=NAME, only=NAME, blackout=NAME. With
    --replace the schedules that use it follow within a second. All walls are those
    of the schedule's zone.

    Examples:
      mainspring calendar create holidays --date 2026-12-24 --yearly 12-25 --yearly 01-01
      mainspring calendar create nights --window 22:00-06:00 --weekday sat --weekday sun
      mainspring schedule create nightly --job report --when "0 2 * * * not=holidays"
    """
    written = Calendar(
        name=name,
        dates=frozenset(_each(date, "date", _date, "a date, such as 2026-12-24")),
        ranges=tuple(_each(range_, "range", _range, "two dates, such as 2026-12-24..2027-01-01")),
        yearly=frozenset(_each(yearly, "yearly", _yearly, "month and day, such as 12-25")),
        weekdays=frozenset(_each(weekday, "weekday", _weekday, f"one of {', '.join(WEEKDAYS)}")),
        windows=tuple(_each(window, "window", _window, "two times of day, such as 22:00-06:00")),
    )
    calendar = written if file is None else _joined(written, file)
    async with invocation.client() as client:
        if replace or expected_version is not None:
            stored = await client.calendars.put(calendar, expected_version=expected_version)
        else:
            stored = await client.calendars.create(calendar)
    _print(invocation, stored)


@command("import")
async def import_(
    name: Name,
    file: Annotated[str, Parameter(help="An iCalendar file (.ics).")],
    /,
    *,
    zone: Zone = "UTC",
    expected_version: ExpectedVersion = None,
    invocation: Invocation,
) -> None:
    """Store the whole days of an iCalendar file as a calendar.

    One of this name is replaced, so a newer file is imported the same way. What is
    only a part of a day is left out, and told.

    Example:
      mainspring calendar import holidays germany.ics --zone Europe/Berlin
    """
    data = read_bytes(file, MAX_BYTES + 1, "file")
    async with invocation.client() as client:
        imported = await client.calendars.import_icalendar(name, data, zone=zone, expected_version=expected_version)
    if invocation.wants_json:
        invocation.print_json(imported)
        return
    for reason in imported.left_out:
        invocation.say(f"{Path(file).name}: left out {reason}")
    _print(invocation, imported.calendar)


@command("list")
async def list_calendars(*, invocation: Invocation) -> None:
    """List calendars, and which schedules use them.

    Examples:
      mainspring calendar list
      mainspring calendar list -o json
    """
    async with invocation.client() as client:
        calendars = await client.calendars.list()
    if invocation.wants_json:
        invocation.print_json({"calendars": calendars})
    elif calendars:
        rows = [_row(each, invocation.now) for each in calendars]
        invocation.print_lines(fitted(COLUMNS, rows, invocation.room))
    else:
        invocation.print("No calendars.")


@command("show")
async def show(name: Name, /, *, invocation: Invocation) -> None:
    """Show a calendar: its days, who uses it, who changed it.

    Example:
      mainspring calendar show holidays
    """
    async with invocation.client() as client:
        calendar = await client.calendars.find(name)
    _print(invocation, calendar)


@command("delete")
async def delete(
    name: Name,
    /,
    *,
    yes: Annotated[bool, Flag, Parameter(help="Do not ask.")] = False,
    invocation: Invocation,
) -> None:
    """Remove a calendar that no schedule uses.

    Example:
      mainspring calendar delete holidays --yes
    """
    async with invocation.client() as client:
        if not yes:
            await client.calendars.find(name)  # nobody is asked about what is not there
            confirm(invocation, f"Delete calendar {safe(name)}?", hint="Say --yes.")
        await client.calendars.delete(name)
    if invocation.wants_json:
        invocation.print_json({"name": name, "deleted": True})
    else:
        invocation.print("deleted")


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _each(texts: Iterable[str], option: str, read: Callable[[str], T], rule: str) -> Iterable[T]:
    for text in texts:
        try:
            yield read(text)
        except ValueError as error:
            raise InvalidInput(
                f"--{option} is {quoted(text)}; it must be {rule}.",
                code="invalid-calendar",
                field=option,
                value=quoted(text),
                rule=f"must be {rule}",
            ) from error


def _date(text: str) -> date:
    return date.fromisoformat(text)


def _range(text: str) -> tuple[date, date]:
    first, _, last = text.partition("..")
    return date.fromisoformat(first), date.fromisoformat(last)


def _yearly(text: str) -> tuple[int, int]:
    day = date.fromisoformat(f"2000-{text}")
    return day.month, day.day


def _weekday(text: str) -> int:
    return WEEKDAYS.index(text.lower()[:3])


def _window(text: str) -> tuple[time, time]:
    begin, _, end = text.partition("-")
    return time.fromisoformat(begin), time.fromisoformat(end)


def _joined(calendar: Calendar, path: str) -> Calendar:
    """What was typed and what is in the file."""
    document = read_document(read_bytes(path, MAX_BYTES + 1, "file"), path)
    document.pop("name", None)
    return _both(calendar, calendar_of({"name": calendar.name} | document))


def _both(one: Calendar, other: Calendar) -> Calendar:
    return Calendar(
        name=one.name,
        dates=one.dates | other.dates,
        weekdays=one.weekdays | other.weekdays,
        ranges=one.ranges + other.ranges,
        yearly=one.yearly | other.yearly,
        windows=one.windows + other.windows,
    )


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _print(invocation: Invocation, calendar: CalendarSummary) -> None:
    if invocation.wants_json:
        invocation.print_json(calendar)
    else:
        invocation.print(facts(_lines_about(calendar)))


def _lines_about(calendar: CalendarSummary) -> Facts:
    yield "calendar", Text(safe(calendar.name), style="bold")
    for kind, days in calendar.days.items():
        yield kind, ", ".join(_said(kind, day) for day in days)
    yield "used by", ", ".join(calendar.used_by) or "no schedule"
    yield "version", f"{calendar.version}, since {as_instant(calendar.changed_at)} by {calendar.changed_by}"
    yield "created", f"{as_instant(calendar.created_at)} by {calendar.created_by}"


def _said(kind: str, day: str | int | list[str]) -> str:
    if isinstance(day, int):
        return WEEKDAYS[day]
    if isinstance(day, str):
        return day
    begin, end = day
    return f"{begin[:5]}-{end[:5]}" if kind == "windows" else f"{begin}..{end}"


def _row(calendar: CalendarSummary, now: datetime) -> list[Text]:
    days = [counted(len(found), KINDS.get(kind, kind)) for kind, found in calendar.days.items()]
    return [
        Text(safe(calendar.name)),
        Text(", ".join(days)),
        Text(safe(", ".join(calendar.used_by), 120) or "–"),
        Text(str(calendar.version)),
        Text(ago(calendar.changed_at, now)),
    ]
