"""Tables for people that fit their terminal. And runs as such a table, newest first, with times as they are said."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from rich.cells import cell_len, chop_cells
from rich.text import Text

from mainspring.cli.text import as_span, counted, safe
from mainspring.model.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
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
WIDE = 150  # a terminal with room for an error beside its run
ID_PREFIX = 8  # what is left of ids where they do not fit
MOST_LINES = 60  # of a traceback
GAP = 2


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and what becomes of it where there is no room for all."""

    heading: str
    is_number: bool = False
    is_id: bool = False  # its beginning says enough
    least: int | None = None  # texts are cut to so many characters, rather than nothing
    leave_out: int = 0  # the highest goes first; 0 stays
    is_below: bool = False  # where nothing is cut, it goes below its line rather than beside it


@dataclass(frozen=True, slots=True)
class _Filled:
    column: Column
    cells: list[Text]  # the heading is the first

    @property
    def width(self) -> int:
        return max(cell.cell_len for cell in self.cells)

    @property
    def least(self) -> int:
        """How narrow it can be; its heading is never cut."""
        cut = self.width if self.column.least is None else max(self.column.least, self.cells[0].cell_len)
        return min(self.width, cut)

    @property
    def is_empty(self) -> bool:
        return not any(self.cells[1:])

    def cut(self, width: int) -> _Filled:
        mark: Literal["crop", "ellipsis"] = "crop" if self.column.is_id else "ellipsis"
        heading, *cells = (cell.copy() for cell in self.cells)
        for cell in cells:
            cell.truncate(width, overflow=mark)
        return replace(self, cells=[heading, *cells])

    def line(self, at: int) -> Text:
        cell, blank = self.cells[at], " " * (self.width - self.cells[at].cell_len)
        return Text(blank).append_text(cell) if self.column.is_number else cell.copy().append(blank)


def fitted(columns: Sequence[Column], rows: Iterable[Sequence[Text]], room: int | None) -> list[Text]:
    """Rows under their headings, as lines that fit; with `room` None, they are as long as they are.

    What does not fit is left out as whole columns, or cut where a text may be: headings and numbers are never cut.
    """
    filled = [
        _Filled(column, [Text(column.heading, style="dim"), *cells])
        for column, *cells in zip(columns, *rows, strict=True)
    ]
    if room is not None and _width(each.width for each in filled) > room:
        filled = _cut(_left(filled, room), room)
    lines = [Text(" " * GAP).join(each.line(at) for each in filled) for at in range(len(filled[0].cells))]
    for line in lines:
        line.rstrip()
    return lines


def whole(columns: Sequence[Column], rows: Iterable[Sequence[Text]], room: int | None) -> list[Text]:
    """Rows under their headings, of which no cell is cut: names are typed again, and half a time is none.

    Where they are too long, whole columns are left out; then texts go below their line; then all but the first cell do.
    """
    table = list(zip(columns, *rows, strict=True))
    for chosen in _fewer(table):
        lines = _beside(chosen)
        if fits(lines, room):
            return lines
    chosen = [cells for cells in table if not cells[0].leave_out and any(cells[1:])]
    beside = [cells for cells in chosen if not cells[0].is_below]
    below = [cells[1:] for cells in chosen if cells[0].is_below]
    lines = _beside(beside)
    if not fits(lines, room):
        lines, below = [Text(""), *beside[0][1:]], [*(cells[1:] for cells in beside[1:]), *below]
    return list(_with_below(lines, below, room or 0))


def fits(lines: Iterable[Text], room: int | None) -> bool:
    return room is None or all(line.cell_len <= room for line in lines)


def wrapped(cell: Text, room: int, first: str = "  ", indent: str = "  ") -> Iterator[Text]:
    """A text in lines that fit, broken between words."""
    for line in _wrapped(cell.plain, room, first, indent):
        yield Text(line, style=cell.style)


def _wrapped(text: str, room: int, line: str, indent: str) -> Iterator[str]:
    """By cells of the terminal, of which a wide character takes two: `textwrap` counts characters."""
    is_empty = True
    for word in re.findall(r"\s*\S+", text):  # with the space before it, which lines do not begin with
        if not is_empty and cell_len(line + word) > room:
            yield line
            line, is_empty = indent, True
        rest = word.lstrip() if is_empty else word
        while cell_len(line + rest) > room:  # a word that is longer than a line
            piece = chop_cells(rest, max(2, room - cell_len(line)))[0]
            yield line + piece
            line, rest = indent, rest[len(piece) :]
        line, is_empty = line + rest, False
    if not is_empty:
        yield line


_Cells = tuple[Any, ...]  # a column, and then its texts


def _fewer(table: list[_Cells]) -> Iterator[list[_Cells]]:
    """The table; then without what is empty, and without one column after the other that may be left out."""
    yield table
    table = [cells for cells in table if any(cells[1:])]
    yield table
    for last in sorted({cells[0].leave_out for cells in table} - {0}, reverse=True):
        yield [cells for cells in table if cells[0].leave_out < last]


def _beside(table: list[_Cells]) -> list[Text]:
    columns, *rows = zip(*table, strict=True)
    return fitted(columns, rows, None)


def _with_below(lines: list[Text], below: list[_Cells], room: int) -> Iterator[Text]:
    heading, *lines = lines
    if heading:
        yield heading
    for at, line in enumerate(lines):
        yield from [line] if line.cell_len <= room else wrapped(line, room, first="")
        for cells in below:
            yield from wrapped(cells[at], room)


def _left(filled: list[_Filled], room: int) -> list[_Filled]:
    """The columns for which there is room: ids by their beginnings, and not those that matter least."""
    left = [each.cut(ID_PREFIX) if each.column.is_id else each for each in filled if not each.is_empty]
    while _width(each.least for each in left) > room and any(each.column.leave_out for each in left):
        left.remove(max(left, key=lambda each: each.column.leave_out))
    return left


def _cut(filled: list[_Filled], room: int) -> list[_Filled]:
    """Texts are cut, the longest first, until all fit."""
    widths = [each.width for each in filled]
    while _width(widths) > room:
        spare = [at for at, each in enumerate(filled) if widths[at] > each.least]
        if not spare:
            break
        widths[max(spare, key=lambda at: widths[at])] -= 1
    return [each.cut(width) for each, width in zip(filled, widths, strict=True)]


def _width(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + GAP * (len(found) - 1)


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────


RUNS = (
    Column("run"),  # whole, so that it can be copied
    Column("state"),
    Column("job", least=17),
    Column("queue", least=12, leave_out=3),
    Column("pri", is_number=True, leave_out=2),
    Column("tries", is_number=True, leave_out=1),
    Column("when"),
)


def lines_of(runs: list[RunSummary], now: datetime, room: int | None) -> list[Text]:
    """A line per run, with what there is to say about it beside or below."""
    if room is None or room >= WIDE:
        beside = [(*_cells(run, now), Text(about(run, now))) for run in runs]
        return fitted((*RUNS, Column("", least=20)), beside, room)
    heading, *lines = fitted(RUNS, [_cells(run, now) for run in runs], room)
    below = ([line, Text(f"  {about(run, now)}", style="dim")] for line, run in zip(lines, runs, strict=True))
    return [heading, *(line for pair in below for line in pair if line.plain.strip())]


def _cells(run: RunSummary, now: datetime) -> tuple[Text, ...]:
    return (
        Text(str(run.id)),
        Text(run.state.value, style=COLOURS.get(run.state, "")),
        Text(safe(run.job)),
        Text(safe(run.queue)),
        Text(str(run.priority)),
        Text(str(run.attempts_spent)),
        Text(ago(run.at, now)),
    )


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
    return lines if surplus <= 0 else [f"… {counted(surplus, 'line')} more (-o json shows them) …", *lines[surplus:]]


def ago(at: datetime, now: datetime) -> str:
    """The first unit only: 14 min ago."""
    seconds = (now - at).total_seconds()
    return until(at, now) if seconds < 0 else f"{_first_unit(seconds)} ago"


def until(at: datetime, now: datetime) -> str:
    seconds = (at - now).total_seconds()
    return "now" if seconds <= 0 else f"in {_first_unit(seconds)}"


def _first_unit(seconds: float) -> str:
    return " ".join(as_span(seconds).split()[:2])
