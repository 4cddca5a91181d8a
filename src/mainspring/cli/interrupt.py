"""Ctrl-C while the program is still being imported: there is nothing to undo, so it ends at once and without a word."""

from __future__ import annotations

import os
import signal

EXIT_INTERRUPTED = 130


def leave_at_once() -> None:
    """Until a command runs: an exception could come up in any import, and would be printed with its traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        signal.signal(signal.SIGINT, _leave)


def raise_interrupts() -> None:
    """From here on commands clean up after themselves, and event loops take over."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os._exit(EXIT_INTERRUPTED)
