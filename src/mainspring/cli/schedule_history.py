"""`mainspring schedule history`: what became of the instants of a schedule, and why some did not fire."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from rich.text import Text

from mainspring.app.mainspring import Mainspring
from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.parsing import parse_moment
from mainspring.cli.schedules import as_stamp
from mainspring.cli.tables import COLOURS, Column, ago, fits, fitted, wrapped
from mainspring.cli.text import as_span, safe
from mainspring.errors import ScheduleNotFound
from mainspring.model.scheduling import OccurrenceOutcome, OccurrenceRecord, ScheduleState, ScheduleSummary
from mainspring.schedule.deciding import ON_TIME, SkipReason
from mainspring.schedule.zones import zone_named

NARROW = 60  # one without room for years

REASONS = {
    SkipReason.MISSED: "missed, and catch-up is none",
    SkipReason.OUTSIDE_WINDOW: "missed for longer than catch-up looks back",
    SkipReason.PAUSED: "the schedule was paused",
    SkipReason.DELETED: "the schedule was deleted",
    SkipReason.TOO_MANY: "too many were overdue when the schedule was changed",
    SkipReason.OVERLAP: "an earlier run had not ended",
}


@command("history")
async def history(
    name: Annotated[str, Parameter(help="The schedule's name.")],
    /,
    *,
    missed: Annotated[bool, Flag, Parameter(help="Only what did not fire, or fired more than a minute late.")] = False,
    since: Annotated[str | None, Parameter(help="From then on: 12h (ago), or 2026-12-24T18:00Z.")] = None,
    before: Annotated[str | None, Parameter(help="… and before then.")] = None,
    limit: Annotated[int, Parameter(help="How many, at most 1000.")] = 50,
    invocation: Invocation,
) -> None:
    """Show what became of the instants of a schedule, newest first.

    Instants are in the schedule's zone. Each fired (and its run is shown, with the
    state it is in now), was collapsed into the run of another one, or was skipped
    for a reason. Neighbours that share a fate share a line. Of what was run again,
    the last run is shown; -o json has the first one too.

    Examples:
      mainspring schedule history nightly
      mainspring schedule history nightly --missed --since 12h
      mainspring schedule history nightly --before 2026-12-01T00:00Z -o json
    """
    now = invocation.now
    since_at, before_at = parse_moment(since, "since", now), parse_moment(before, "before", now)
    async with invocation.client() as client:
        records = await client.schedules.history(name, since=since_at, before=before_at, missed=missed, limit=limit)
        zone = (await client.schedules.versions(name))[0].zone
        overdue = overdue_since(await _present(client, name), now)
    if invocation.wants_json:
        invocation.print_json({"schedule": name, "zone": zone, "overdue_since": overdue, "occurrences": records})
        return
    print_records(invocation, zone, overdue, records, "Nothing was missed." if missed else "Nothing was due yet.")
    if len(records) == limit:
        invocation.say(f"there may be more: the same with --before {as_stamp(records[-1].nominal_at)}")


def print_records(
    invocation: Invocation, zone: str, overdue: datetime | None, records: Sequence[OccurrenceRecord], if_none: str
) -> None:
    now = invocation.now
    if overdue is not None:
        invocation.print(Text(f"Due {ago(overdue, now)}, and not decided yet: is a scheduler running?", style="red"))
    if records:
        invocation.print_lines(lines_of(records, zone_named(zone), now, invocation.room))
    elif overdue is None:
        invocation.print(if_none)


async def _present(client: Mainspring, name: str) -> ScheduleSummary | None:
    """None if it was deleted: then there is only its history."""
    with contextlib.suppress(ScheduleNotFound):
        return await client.schedules.find(name)
    return None


def overdue_since(schedule: ScheduleSummary | None, now: datetime) -> datetime | None:
    """Since when an instant waits to be decided, if it has waited for too long: schedulers are down, or behind."""
    if schedule is None:
        return None
    due_at = schedule.next_due_at
    is_late = schedule.state is ScheduleState.ACTIVE and due_at is not None and now - due_at > ON_TIME
    return due_at if is_late else None


# ── as lines ────────────────────────────────────────────────────────────────────────────────────────────────────


class _Shown(NamedTuple):
    """What there is to say about one record."""

    instants: Text
    fate: Text
    run: Text
    state: Text


def lines_of(records: Sequence[OccurrenceRecord], zone: ZoneInfo, now: datetime, room: int | None) -> list[Text]:
    """One line for each where there is room; else its run is below it. Nothing is cut: ids and times are copied."""
    with_seconds = any(each.nominal_at.second or each.last_at.second for each in records)
    with_year = room is None or room >= NARROW
    shown = [
        _Shown(
            Text(_instants(each, zone, seconds=with_seconds, year=with_year)),
            _fate(each, zone, now),
            Text("" if each.run_id is None else str(each.run_id)),
            _state(each),
        )
        for each in records
    ]
    columns = (Column(zone.key), Column("became"))
    beside = fitted((*columns, Column("run"), Column("state")), shown, None)
    if room is None or fits(beside, room):
        return beside
    heading, *lines = fitted(columns, [(each.instants, each.fate) for each in shown], None)
    if room < NARROW or not fits(lines, room):
        return [Text(zone.key, style="dim"), *(line for each in shown for line in _narrow(each, room))]
    below = ((line, Text(f"  {each.run} ").append_text(each.state)) for line, each in zip(lines, shown, strict=True))
    return [heading, *(line for pair in below for line in pair if line.plain.strip())]


def _narrow(shown: _Shown, room: int) -> Iterator[Text]:
    first, dash, last = shown.instants.plain.partition(" – ")
    apart = [Text(f"{first}{dash.rstrip()}"), Text(f"  {last}")]
    yield from [shown.instants] if fits([shown.instants], room) else apart
    yield from wrapped(shown.fate, room)
    if shown.run:
        yield Text(f"  {shown.run}")
        yield Text("  ").append_text(shown.state)


def _instants(record: OccurrenceRecord, zone: ZoneInfo, *, seconds: bool, year: bool) -> str:
    """`Tue 17 Nov 2026 09:00 CET`, or from the first to the last of several."""
    first, last = record.nominal_at.astimezone(zone), record.last_at.astimezone(zone)
    clock = "%H:%M:%S" if seconds else "%H:%M"
    told = _day(first, year=year) + f" {first:{clock}}"
    if first != last:
        offset = f" {first.tzname()}" if first.tzname() != last.tzname() else ""
        day = "" if first.date() == last.date() else _day(last, year=year) + " "
        told += f"{offset} – {day}{last:{clock}}"
    return f"{told} {last.tzname()}"


def _day(at: datetime, *, year: bool) -> str:
    return f"{at:%a} {at.day:2} {at:%b %Y}" if year else f"{at:%a} {at.day:2} {at:%b}"


def _fate(record: OccurrenceRecord, zone: ZoneInfo, now: datetime) -> Text:
    match record.outcome:
        case OccurrenceOutcome.FIRED:
            return _firing(record, zone, now)
        case OccurrenceOutcome.COLLAPSED:
            return Text("collapsed into" if record.first_run_id is None else "collapsed, rerun as", style="yellow")
        case OccurrenceOutcome.SKIPPED:
            reason = REASONS.get(record.reason, record.reason)  # type: ignore[call-overload]  # or a newer program's
            return Text(f"skipped: {safe(reason, 80)}", style="yellow")


def _firing(record: OccurrenceRecord, zone: ZoneInfo, now: datetime) -> Text:
    due_at, late = record.due_at, record.late or timedelta(0)
    if due_at is not None and due_at > max(now, record.decided_at):
        return Text("staged", style="dim")
    told = Text("fired")
    if late:
        told.append(f", late by {as_span(late.total_seconds())}", style="yellow" if late > ON_TIME else "")
    if due_at not in (None, record.nominal_at):
        told.append(f", due {due_at.astimezone(zone):%H:%M:%S}", style="dim")
    if record.first_run_id is not None:
        told.append(", rerun as")
    return told


def _state(record: OccurrenceRecord) -> Text:
    if record.run_id is None:
        return Text("")
    state = record.run_state
    return Text("no longer kept", style="dim") if state is None else Text(state.value, style=COLOURS.get(state, ""))
