"""What `up` shows while it runs: finished runs as they come, and a line of counts under them.

On a terminal, finished runs scroll by, a few per second at most, above a status line that stays. Elsewhere a status
line is printed every few seconds; with `-o json` it is a JSON document on a line of its own, every second.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from mainspring.cli.text import as_json, as_span, safe
from mainspring.store import health
from mainspring.store.failures import DATABASE_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mainspring.store.connection import Record
    from mainspring.store.database import Database

log = structlog.get_logger()

LOOK_SECONDS = 1.0
LINE_SECONDS = 5.0  # between status lines, where there is no terminal
RUNS_PER_LOOK = 10
BOUND = 10_000  # counts beyond it are shown as "10,000+": counting a backlog of millions would slow its workers
VISIBLE = timedelta(milliseconds=250)  # what was recorded at t is committed, and seen, a little later

_MARKS = {"succeeded": ("✓", "32"), "failed": ("✗", "31")}


@dataclass
class Status:
    """What one look saw."""

    counts: dict[str, int]
    per_second: float
    totals: dict[str, int]
    latest: list[Record] = field(default_factory=list)
    omitted: int = 0

    def line(self, room: int | None = None) -> str:
        """All counts, or as many of them as there is room for: none is cut."""
        counts = [f"{name} {_bounded(self.counts[name])}" for name in ("ready", "running", "scheduled")]
        counts += [f"{name} {_bounded(self.counts[name])}" for name in ("held", "dead") if self.counts[name]]
        counts.append(f"finished {sum(self.totals.values()):,} ({self.per_second:,.1f}/s)")
        counts += [f"failed {self.totals.get('failed', 0):,}", f"workers {self.counts['workers']}"]
        while room is not None and counts and len("  ".join(counts)) > room:
            counts.pop()
        return "  ".join(counts)

    def document(self) -> dict[str, Any]:
        return {**self.counts, "finished": self.totals, "per_second": round(self.per_second, 1)}


class Watch:
    """Looks at the database now and then, and shows what it sees."""

    def __init__(self, database: Database, lanes: int, *, tenant_id: int, as_json: bool) -> None:
        self._database = database
        self._lanes = lanes
        self._tenant_id = tenant_id
        self._as_json = as_json
        self._is_live = sys.stdout.isatty() and not as_json
        self._seen_until: datetime | None = None
        self._totals: Counter[str] = Counter()

    async def run(self) -> None:
        while True:
            try:
                status = await self._look()
            except DATABASE_ERRORS as error:
                log.warning("the status waits for the database", cause=str(error))
            else:
                self._show(status)
            await asyncio.sleep(LOOK_SECONDS if self._is_live or self._as_json else LINE_SECONDS)

    def clear(self) -> None:
        """Take the status line away, so that something else can be printed."""
        if self._is_live:
            sys.stdout.write("\r\033[2K")
            sys.stdout.flush()

    async def _look(self) -> Status:
        async with self._database.acquire() as connection:
            row = await health.activity(connection, self._lanes, BOUND, tenant_id=self._tenant_id)
            until = row["now"] - VISIBLE
            after, self._seen_until = self._seen_until or until, until
            rows = await health.finished_between(connection, self._lanes, after, until, tenant_id=self._tenant_id)
            finished = sum(each["count"] for each in rows)
            latest: Sequence[Record] = ()
            if self._is_live and finished:
                latest = await health.latest_attempts(
                    connection, self._lanes, after, until, RUNS_PER_LOOK, tenant_id=self._tenant_id
                )
        for each in rows:
            self._totals[each["outcome"]] += each["count"]
        span = (until - after).total_seconds()
        return Status(
            counts={name: int(value) for name, value in row.items() if name != "now"},
            per_second=finished / span if span else 0.0,
            totals=dict(self._totals),
            latest=list(reversed(latest)),
            omitted=finished - len(latest),
        )

    def _show(self, status: Status) -> None:
        if self._as_json:
            print(as_json(status.document(), indent=0), flush=True)
        elif self._is_live:
            self._redraw(status)
        else:
            print(status.line(), flush=True)

    def _redraw(self, status: Status) -> None:
        self.clear()
        if status.omitted > 0:
            print(f"\033[2m  … {status.omitted:,} more\033[0m")
        for row in status.latest:
            print(_line_about(row))
        sys.stdout.write(f"\033[2m{status.line(_terminal_width() - 1)}\033[0m\r")
        sys.stdout.flush()


def _line_about(row: Record) -> str:
    """One finished run: when, how it went, which job, how long it took, and what came of it."""
    mark, colour = _MARKS.get(row["outcome"], ("•", "33"))
    at = row["finished_at"] or row["recorded_at"]
    took = as_span((row["finished_at"] - row["started_at"]).total_seconds()) if row["started_at"] else "–"
    said = _said(row)
    line = f"{safe(row['job'], 24):<16} {took:>8}  {said}"
    return f"\033[2m{at:%H:%M:%S}\033[0m \033[{colour}m{mark}\033[0m {safe(line, _terminal_width() - 13)}"


def _said(row: Record) -> str:
    if row["error"] is not None:
        error = msgspec.json.decode(row["error"])
        fate = "will be retried" if row["state"] == "scheduled" else row["state"]
        return safe(f"{fate} after {error.get('type')}: {error.get('message')}", 120)
    if row["result"] is not None:
        return safe(row["result"].decode("utf-8", "replace"), 100)
    return "" if row["outcome"] == "succeeded" else row["outcome"]


def _bounded(count: int) -> str:
    return f"{BOUND:,}+" if count >= BOUND else f"{count:,}"


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns
