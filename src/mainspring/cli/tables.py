"""Runs as a table for people: a line each, newest first, with times as they are said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mainspring.cli.text import as_span, safe
from mainspring.model.lifecycle import State

if TYPE_CHECKING:
    from datetime import datetime

    from mainspring.model.listing import RunSummary

COLOURS = {
    State.SUCCEEDED: "green",
    State.RUNNING: "cyan",
    State.DEAD: "red",
    State.LOST: "red",
    State.EXPIRED: "yellow",
    State.CANCELLED: "yellow",
    State.HELD: "yellow",
}
# A UUID takes half of a narrow terminal.
NARROW, WIDE = 100, 150
SHORT, LONG = 17, 24
MOST_LINES = 60  # of a traceback


def lines_of(runs: list[RunSummary], now: datetime, width: int) -> list[Text]:
    """A line per run, with its id whole, so that it can be copied; what there is to say about it beside or below."""
    is_narrow, is_wide = width < NARROW, width >= WIDE
    headings = ("run", "state", "job", *(() if is_narrow else ("queue", "pri", "tries")), "when")
    rows = [[Text(heading, style="dim") for heading in headings]]
    rows += [_cells(run, now, is_narrow=is_narrow) for run in runs]
    widths = [max(row[at].cell_len for row in rows) for at in range(len(headings))]
    lines: list[Text] = []
    for row, run in zip(rows, [None, *runs], strict=True):
        line = Text()
        for cell, space in zip(row, widths, strict=True):
            line.append_text(cell).append(" " * (space - cell.cell_len + 2))
        said = "" if run is None else about(run, now)
        if is_wide:
            line.append(said)
        line.rstrip()
        lines.append(line)
        if said and not is_wide:
            lines.append(Text(f"  {said}", style="dim"))
    return lines


def _cells(run: RunSummary, now: datetime, *, is_narrow: bool) -> list[Text]:
    first = [
        Text(str(run.id)),
        Text(run.state.value, style=COLOURS.get(run.state, "")),
        Text(safe(run.job, SHORT if is_narrow else LONG)),
    ]
    more = [Text(safe(run.queue, LONG)), Text(f"{run.priority:>3}"), Text(f"{run.attempts_spent:>5}")]
    return [*first, *(() if is_narrow else more), Text(ago(run.at, now))]


def plain_table(*headings: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table


def about(run: RunSummary, now: datetime) -> str:
    """What is most worth knowing about a run in its state."""
    if run.error is not None:
        return error_line(run.error, 160)
    if run.held_for is not None:
        return safe(run.held_for)
    if run.is_cancelling:
        return "asked to stop"
    if run.state is State.SCHEDULED:
        return f"due {until(run.due_at, now)}"
    return safe(", ".join(run.tags), 80)


def error_line(error: dict[str, Any], limit: int) -> str:
    kind, message = error.get("type") or error.get("code") or "error", error.get("message", "")
    return safe(f"{kind}: {message}" if message else str(kind), limit)


def traceback_lines(error: dict[str, Any] | None) -> list[str]:
    """The traceback that an attempt left, if it did: harmless, and only its end if there is much of it."""
    text = str((error or {}).get("traceback") or "").rstrip("\n")
    lines = [safe(line) for line in text.split("\n")] if text else []
    surplus = len(lines) - MOST_LINES
    return lines if surplus <= 0 else [f"… {surplus} lines more (-o json shows them) …", *lines[surplus:]]


def ago(at: datetime, now: datetime) -> str:
    """The first unit only: 14 min ago."""
    seconds = (now - at).total_seconds()
    return until(at, now) if seconds < 0 else f"{_first_unit(seconds)} ago"


def until(at: datetime, now: datetime) -> str:
    seconds = (at - now).total_seconds()
    return "now" if seconds <= 0 else f"in {_first_unit(seconds)}"


def _first_unit(seconds: float) -> str:
    return " ".join(as_span(seconds).split()[:2])
