"""`mainspring run logs` and `run watch`: what a run logged, and a run while it goes on."""

import sys
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from typing import Annotated

from cyclopts import Parameter

from mainspring.cli.command import Flag, Invocation, command
from mainspring.cli.tables import traceback_lines
from mainspring.cli.text import as_json, as_span, safe
from mainspring.control.watching import RunUpdate
from mainspring.errors import InvalidInput
from mainspring.model.lifecycle import State
from mainspring.model.report import LogLine, Progress
from mainspring.model.run import Attempt, Run

_COLOURS = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_MARGIN = " " * 13  # under the first line's level, for the others of its text


class LinePrinter:
    """Prints lines under a heading for each attempt, and below them the traceback of one that failed."""

    def __init__(self) -> None:
        self._is_coloured = sys.stdout.isatty()
        self._fence: int | None = None
        self._told: set[int] = set()  # fences of attempts whose tracebacks were printed

    @property
    def has_printed(self) -> bool:
        return self._fence is not None

    def print(self, lines: Iterable[LogLine], attempts: Iterable[Attempt]) -> None:
        for line in sorted([*lines, *self._tracebacks(attempts)], key=lambda line: line.fence):
            if line.fence != self._fence:
                self._fence = line.fence
                print(self._painted(f"── attempt {line.attempt} (fence {line.fence}) ──", "2"))
            print(self._written(line))
        sys.stdout.flush()

    def _tracebacks(self, attempts: Iterable[Attempt]) -> Iterator[LogLine]:
        """Those of attempts that are over by now, each as a line that its attempt said last."""
        for attempt in attempts:
            lines = traceback_lines(attempt.error)
            if lines and attempt.fence not in self._told:
                self._told.add(attempt.fence)
                yield LogLine(
                    at=attempt.finished_at or attempt.recorded_at,
                    level="ERROR",
                    logger="traceback",
                    text="\n".join(lines),
                    attempt=attempt.number,
                    fence=attempt.fence,
                )

    def _written(self, line: LogLine) -> str:
        at = f"{line.at:%H:%M:%S}.{line.at.microsecond // 1000:03}"
        first, *others = [safe(each) for each in line.text.split("\n")]
        head = " ".join(
            (
                self._painted(at, "2"),
                self._painted(f"{safe(line.level, 8):<8}", _COLOURS.get(line.level, "36")),
                f"{self._painted(safe(line.logger, 40), '2')}  {first}",
            )
        )
        return "\n".join((head, *(f"{_MARGIN}{other}".rstrip() for other in others)))

    def _painted(self, text: str, colour: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._is_coloured else text


@command("logs")
async def logs(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    attempt: Annotated[int | None, Parameter(help="Only lines of the tries with this number.")] = None,
    follow: Annotated[bool, Flag, Parameter(help="Go on until the run has ended.")] = False,
    invocation: Invocation,
) -> None:
    """Show what a run logged.

    Lines of Python's logging, of context.log, and what an isolated run printed;
    below them the traceback of an attempt that failed. -o json has lines only.

    Examples:
      mainspring run logs ID
      mainspring run logs ID --attempt 2
      mainspring run logs ID --follow -o json     one JSON document a line
    """
    if attempt is not None and not 0 <= attempt < 2**31:
        raise InvalidInput(
            f"--attempt is {attempt}; it must be the number of an attempt.", code="invalid-attempt", field="attempt"
        )
    printer = LinePrinter()
    async with invocation.client() as client:
        if follow:
            async for update in client.runs.watch(run_id):
                _print(invocation, printer, update, attempt)
            return
        seen = RunUpdate(run=await client.runs.find(run_id), lines=await client.runs.logs(run_id))
    if invocation.wants_json:
        invocation.print_json(_of(attempt, seen.lines))
        return
    _print(invocation, printer, seen, attempt)
    if not printer.has_printed:
        invocation.say("no lines were logged; what handlers print is kept if they are isolated")


def _print(invocation: Invocation, printer: LinePrinter, seen: RunUpdate, attempt: int | None) -> None:
    lines = _of(attempt, seen.lines)
    if not invocation.wants_json:
        printer.print(lines, [each for each in seen.run.attempts if attempt in (None, each.number)])
        return
    for line in lines:
        print(as_json(line, indent=0), flush=True)


def _of(attempt: int | None, lines: list[LogLine]) -> list[LogLine]:
    return [line for line in lines if attempt in (None, line.attempt)]


BAR = 24
EXIT_SUCCEEDED, EXIT_NOT_SUCCEEDED = 0, 1


@command("watch")
async def watch(
    run_id: Annotated[str, Parameter(name="id", help="The run's id.")],
    /,
    *,
    invocation: Invocation,
) -> int:
    """Show a run while it goes on.

    Shows its state, its progress, its log lines and the tracebacks of attempts that
    failed as they come, until it has ended.
    Exits with 0 if it succeeded, else with 1.

    Examples:
      mainspring run watch ID
      mainspring run watch $(mainspring run submit report --arg month=11)
      mainspring run watch ID -o json     one JSON document a line
    """
    screen = Screen(is_live=sys.stdout.isatty())
    state = None
    async with invocation.client() as client:
        try:
            async for update in client.runs.watch(run_id):
                state = update.run.state
                if invocation.wants_json:
                    print(as_json(update, indent=0), flush=True)
                else:
                    screen.show(update)
        finally:
            screen.clear()
    return EXIT_SUCCEEDED if state is State.SUCCEEDED else EXIT_NOT_SUCCEEDED


class Screen:
    """On a terminal, lines scroll by above one that stays; elsewhere, each change is a line."""

    def __init__(self, *, is_live: bool) -> None:
        self._is_live = is_live
        self._lines = LinePrinter()
        self._last = ""
        self._told = 0  # attempts that are over

    def show(self, update: RunUpdate) -> None:
        self.clear()
        self._lines.print(update.lines, update.run.attempts)
        for attempt in self._ended_since(update):
            print(safe(f"attempt {attempt.number} {attempt.outcome}{_why(attempt)}", 2_000), flush=True)
        if update.is_over:
            print(_end_of(update.run))
            return
        status = _status_of(update.run)
        if self._is_live:
            sys.stdout.write(f"{safe(status, get_terminal_size().columns - 1)}\r")
            sys.stdout.flush()
        elif status != self._last:
            print(status, flush=True)
        self._last = status

    def _ended_since(self, update: RunUpdate) -> list[Attempt]:
        """Attempts that are over and not told yet, but for the last one of a run that is over: that is its end."""
        attempts = update.run.attempts[: -1 if update.is_over else None]
        told, self._told = self._told, len(attempts)
        return attempts[told:]

    def clear(self) -> None:
        """Take the line that stays away, so that something else can be printed."""
        if self._is_live:
            sys.stdout.write("\r\033[2K")
            sys.stdout.flush()


def _status_of(run: Run) -> str:
    words: list[str] = [run.state.value]
    if run.held_for is not None:
        words.append(f"({safe(run.held_for)})")
    if run.is_cancelling:
        words.append("(asked to stop)")
    if run.state is State.RUNNING:
        words.append(f"attempt {run.attempts_spent + 1}")
    if run.progress is not None:
        words.append(_bar(run.progress, is_of_now=run.state is State.RUNNING and run.progress.fence == run.fence))
    return "  ".join(words)


def _bar(progress: Progress, *, is_of_now: bool) -> str:
    full = round(progress.fraction * BAR)
    whose = "" if is_of_now else f" (attempt {progress.attempt})"
    return f"[{'█' * full}{'·' * (BAR - full)}] {progress.fraction:4.0%}{whose}  {safe(progress.message)}".rstrip()


def _end_of(run: Run) -> str:
    last = run.attempts[-1] if run.attempts else None
    took = ""
    if last is not None and last.started_at is not None and last.finished_at is not None:
        took = f" after {as_span((last.finished_at - last.started_at).total_seconds())}"
    if run.state is State.SUCCEEDED:
        result = None if last is None else last.result
        return f"succeeded{took}" if result is None else f"succeeded{took}\n{as_json(result)}"
    return safe(f"{run.state}{took}{_why(last)}", 2_000)


def _why(attempt: Attempt | None) -> str:
    error = (None if attempt is None else attempt.error) or {}
    words = [word for word in (error.get("type") or error.get("code"), error.get("message")) if word]
    return ": ".join(["", *words])
