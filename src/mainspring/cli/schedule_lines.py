"""Files with a schedule on each line, as text or as JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from mainspring.cli.schedules import read_bytes, read_schedule
from mainspring.errors import InvalidInput, MainspringError
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mainspring.schedule.calendar import Calendar
    from mainspring.schedule.load import Load

MAX_BYTES = 64 << 20


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a file."""

    schedule: str
    count: int = 1
    job: str = ""
    zone: str | None = None


def add_file(load: Load, path: str, *, zone: str, now: datetime, calendars: dict[str, Calendar]) -> None:
    """Count every schedule of a file. A line that is none is named."""
    for number, text in _lines(path):
        try:
            line = _read(text, job=f"{path}:{number}")
            schedule = read_schedule(line.schedule, zone=line.zone or zone, now=now, calendars=calendars)
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


def _read(text: str, job: str) -> Line:
    if not text.startswith("{"):
        return Line(schedule=text, job=job)
    try:
        line = msgspec.json.decode(text, type=Line)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidInput(
            f"it is not such an object: {error}.",
            code="invalid-line",
            hint='Write {"schedule": "0 9 * * *", "count": 3, "job": "report"}.',
            value=quoted(text),
        ) from error
    return line if line.job else msgspec.structs.replace(line, job=job)
