"""`mainspring schedule load`: how many of a set of schedules fall on each minute."""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from rich.text import Text

from mainspring.cli.command import Invocation, command
from mainspring.cli.parsing import parse_span
from mainspring.cli.schedules import (
    CalendarFiles,
    From,
    Zone,
    as_local,
    as_stamp,
    moment,
    read_bytes,
    read_calendars,
    read_schedule,
    until,
)
from mainspring.cli.tables import GAP, Column, fitted
from mainspring.cli.text import counted, number_text
from mainspring.errors import InvalidInput, MainspringError
from mainspring.model.payload import quoted
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.load import STEPS, Load
from mainspring.schedule.zones import zone_named

MAX_ROWS = 31
LEAST_BAR, LONGEST_BAR = 10, 60
STEP = dict(zip(("second", "minute"), STEPS, strict=True))


@command("load")
def show(
    *files: Annotated[str, Parameter(help="Files with a schedule on each line; - for standard input.", required=True)],
    zone: Zone = "UTC",
    from_: From = None,
    within: Annotated[str, Parameter(help="How far to look.")] = "1d",
    step: Annotated[Literal["minute", "second"], Parameter(help="How fine to count.")] = "minute",
    peaks: Annotated[int, Parameter(help="How many of the fullest to show.")] = 5,
    calendar: CalendarFiles = (),
    invocation: Invocation,
) -> None:
    """Count how many schedules fall on each minute.

    A file has one schedule on each line: the schedule itself, or a JSON object
    {"schedule": …, "count": …, "job": …}. Lines that begin with # are left out,
    and - is standard input. H is decided by the schedule's name, or else by the line;
    a spread is counted in equal shares over its window.

    Examples:
      mainspring schedule load nightly.txt hourly.txt
      mainspring schedule load herd.jsonl --within 1h --step second
      crontab -l | cut -d' ' -f1-5 | mainspring schedule load - -o json
    """
    now = moment(from_, zone, invocation.now)
    begin = now.replace(second=0, microsecond=0)
    load = Load(begin, until(begin, parse_span(within, "within") or timedelta(0)), step=STEP[step])
    calendars = read_calendars(calendar, zone=zone, now=now, invocation=invocation)
    for file in files:
        add_file(load, file, zone=zone, now=now, calendars=calendars)
    if invocation.wants_json:
        invocation.print_json(_document(load, step))
    else:
        _print(load, step, zone, max(1, peaks), invocation)


def _document(load: Load, step: str) -> dict[str, Any]:
    buckets = list(load)
    return {
        "begin": as_stamp(load.begin),
        "end": as_stamp(load.end),
        "step": step,
        "schedules": load.schedules,
        "groups": load.groups,
        "total": sum(bucket.count for bucket in buckets),
        "fullest": [{"at": as_stamp(bucket.at), "count": bucket.count} for bucket in load.fullest()],
        "counts": [[as_stamp(bucket.at), bucket.count] for bucket in buckets],
        "tzdata": load.tzdata,
    }


def _print(load: Load, step: str, zone: str, peaks: int, invocation: Invocation) -> None:
    counts = load.counts()
    begin, end = (as_local(at.astimezone(zone_named(zone))) for at in (load.begin, load.end))
    invocation.print(Text(f"{counted(load.schedules, 'schedule')} in {counted(load.groups, 'group')}", style="bold"))
    invocation.print(f"{counted(sum(counts), 'occurrence')} from {begin} to {end}")
    fullest = load.fullest(peaks)
    if fullest:
        invocation.print("", *chart(counts, load.begin, load.step, zone, invocation.width))
        invocation.print("", Text(f"fullest {step}s", style="dim"))
        invocation.print(*_fullest([(bucket.at, bucket.count) for bucket in fullest], zone, seconds=step == "second"))
    invocation.print("", Text(f"tzdata {load.tzdata}", style="dim"))


def chart(counts: Sequence[float], begin: datetime, step: timedelta, zone: str, width: int) -> Iterator[Text]:
    """A row for each stretch of time, with a bar for what falls into it and its fullest bucket."""
    unit = "second" if step == STEPS[0] else "minute"
    stretches = list(_stretches(counts, begin, step))
    rows: list[tuple[Text, ...]] = [
        (_label(at, zone), Text(number_text(total)), Text(number_text(peak))) for at, total, peak in stretches
    ]
    (heading, *lines), bar = _beside_bars(rows, unit, width)
    yield heading
    largest = max(total for _, total, _ in stretches)
    for line, (_, total, _) in zip(lines, stretches, strict=True):
        drawn = "█" * round(bar * total / largest) or ("▏" if total else "")
        yield line.append(" " * GAP).append(drawn, style="green") if bar > 0 and drawn else line


def _beside_bars(rows: list[tuple[Text, ...]], unit: str, width: int) -> tuple[list[Text], int]:
    """The lines, under the longest heading that leaves room for bars; and how long bars may be."""
    lines, spare = [], 0
    for most in (f"most in a {unit}", f"most/{unit[:3]}", "most"):
        columns = (Column("from"), Column("count", is_number=True), Column(most, is_number=True))
        lines = fitted(columns, rows, None)
        spare = width - max(line.cell_len for line in lines) - GAP
        if spare >= LEAST_BAR:
            break
    return lines, min(LONGEST_BAR, spare)


def _label(at: datetime, zone: str) -> Text:
    local = at.astimezone(zone_named(zone))
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return Text(f"{local.day:2} {local:%b} {clock}")


def _stretches(counts: Sequence[float], begin: datetime, step: timedelta) -> Iterator[tuple[datetime, float, float]]:
    width = max(1, _width(len(counts) * step) // step)
    for first in range(0, len(counts), width):
        part = counts[first : first + width]
        yield begin + first * step, sum(part), max(part)


def _width(span: timedelta) -> timedelta:
    """The shortest usual stretch of which there are not too many."""
    usual = [timedelta(seconds=number) for number in (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800)]
    return next((each for each in usual if span / each <= MAX_ROWS), usual[-1])


def _fullest(buckets: list[tuple[datetime, float]], zone: str, *, seconds: bool) -> Iterator[Text]:
    counts = [number_text(count) for _, count in buckets]
    for (at, _), count in zip(buckets, counts, strict=True):
        local = as_local(at.astimezone(zone_named(zone)), seconds=seconds)
        yield Text(f"{local}  {count:>{max(map(len, counts))}}")


MAX_BYTES = 64 << 20


class ScheduleLine(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a file of schedules."""

    schedule: str
    count: int = 1
    job: str = ""
    zone: str | None = None


def add_file(load: Load, path: str, *, zone: str, now: datetime, calendars: dict[str, Calendar]) -> None:
    """Count every schedule of a file. A line that is none is named."""
    for number, text in _lines(path):
        try:
            line = _read(text, job=f"{path}:{number}")
            schedule = read_schedule(line.schedule, zone=line.zone or zone, now=now, calendars=calendars, job=line.job)
            load.add(schedule, weight=line.count, job=line.job)
        except MainspringError as error:
            error.message = f"{path}, line {number}: {error.message}"
            error.fields |= {"file": path, "line": number}
            raise


def _lines(path: str) -> Iterator[tuple[int, str]]:
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if path == "-" else read_bytes(path, MAX_BYTES + 1, "files")
    if len(data) > MAX_BYTES:
        message = f"{quoted(path)} is larger than {MAX_BYTES:,} bytes."
        raise InvalidInput(message, code="file-too-large", hint='Split it, or count equal lines: {"count": …}.')
    for number, raw in enumerate(data.splitlines(), 1):
        text = raw.decode("utf-8", "replace").strip()
        if text and not text.startswith("#"):
            yield number, text


def _read(text: str, job: str) -> ScheduleLine:
    if not text.startswith("{"):
        return ScheduleLine(schedule=text, job=job)
    try:
        line = msgspec.json.decode(text, type=ScheduleLine)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(
            f"it is not such an object: {error}.",
            code="invalid-line",
            hint='Write {"schedule": "0 9 * * *", "count": 3, "job": "report"}.',
            value=quoted(text),
        ) from error
    return line if line.job else msgspec.structs.replace(line, job=job)
