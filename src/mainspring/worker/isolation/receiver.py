"""What the worker makes of what one child sends and prints: it becomes part of its attempt's report.

Nothing of it is believed: it is checked again as if it came from anywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mainspring.errors import BadFrame, InvalidInput, MainspringError
from mainspring.model.payload import encode
from mainspring.model.report import (
    MAX_CHECKPOINT_BYTES,
    MAX_LEVEL_LENGTH,
    MAX_LINE_LENGTH,
    MAX_LOGGER_LENGTH,
    MAX_MESSAGE_LENGTH,
    checked_fraction,
    one_line,
    some_lines,
)
from mainspring.worker.isolation.wire import COME_BACK, LEAVE_SLOT, PREVIOUS_SUCCESS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mainspring.worker.report import AttemptReport
    from mainspring.worker.work import Work

MAX_LINE_BYTES = 4 * MAX_LINE_LENGTH


class ReportReceiver:
    """`report` makes the attempt's report when there is something to put into it. `work` is what has the slot."""

    def __init__(self, report: Callable[[], AttemptReport], *, keeps_output: bool, work: Work | None = None) -> None:
        self._report = report
        self._keeps_output = keeps_output
        self._work = work
        self._unfinished: dict[str, bytes] = {}  # the beginning of a line, by stream

    def on_notice(self, kind: str, body: Any) -> None:
        match kind, body:
            case "progress", [fraction, str(message)]:
                try:
                    self._report().progress(checked_fraction(fraction), one_line(message, MAX_MESSAGE_LENGTH))
                except InvalidInput as error:
                    raise BadFrame(str(error)) from error
            case "log", [str(level), str(logger), str(text)]:
                self._report().log(
                    one_line(level, MAX_LEVEL_LENGTH), one_line(logger, MAX_LOGGER_LENGTH), some_lines(text)
                )
            case "fans-out", None if self._work is not None:
                self._work.fan_out()
            case _:
                raise BadFrame("It told something that is not in the protocol.")

    async def on_request(self, kind: str, body: Any) -> Any:
        work = self._work
        if kind == "checkpoint":
            await self._report().checkpoint(encode(body, what="checkpoint", limit=MAX_CHECKPOINT_BYTES))
        elif kind == PREVIOUS_SUCCESS:
            at = await self._report().previous_success_at()
            return None if at is None else at.isoformat()
        elif kind == LEAVE_SLOT and work is not None and work.waits is not None:
            await work.waits.leave(work)
        elif kind == COME_BACK and work is not None and work.waits is not None:
            await work.waits.come_back(work)
        else:
            raise MainspringError("This worker does not know how to do that.", code="not-done")
        return None

    def on_output(self, stream: str, data: bytes) -> None:
        if not self._keeps_output or self._report().is_full:
            return
        *lines, rest = (self._unfinished.pop(stream, b"") + data).split(b"\n")
        for line in lines:
            if self._report().is_full:
                return  # to look at every line of a flood would keep all other runs of this worker waiting
            self._keep(stream, line)
        if len(rest) > MAX_LINE_BYTES:
            self._keep(stream, rest)
        elif rest:
            self._unfinished[stream] = rest

    def close(self) -> None:
        """The child will print no more: what it began to print is a line too."""
        for stream, line in self._unfinished.items():
            self._keep(stream, line)
        self._unfinished.clear()

    def _keep(self, stream: str, line: bytes) -> None:
        text = line[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r")
        self._report().log("INFO", stream, some_lines(text))
