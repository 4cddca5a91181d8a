"""Log lines of runs, as people read them. What a job logged is harmless here, whatever it contains."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mainspring.cli.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mainspring.model.report import LogLine

_COLOURS = {"DEBUG": "2", "INFO": "36", "WARNING": "33", "ERROR": "31", "CRITICAL": "1;31"}
_MARGIN = " " * 13  # under the first line's level, for the others of its text


class LinePrinter:
    """Prints lines under a heading for each attempt."""

    def __init__(self) -> None:
        self._is_coloured = sys.stdout.isatty()
        self._fence: int | None = None

    def print(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            if line.fence != self._fence:
                self._fence = line.fence
                print(self._painted(f"── attempt {line.attempt} (fence {line.fence}) ──", "2"))
            print(self._written(line))
        sys.stdout.flush()

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
        return "\n".join((head, *(f"{_MARGIN}{other}" for other in others)))

    def _painted(self, text: str, colour: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._is_coloured else text
