"""What an attempt may say about itself while it goes on: progress, log lines, checkpoints. Bounded and cleaned."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mainspring.errors import InvalidInput
from mainspring.model.invalid import invalid
from mainspring.model.payload import printable

if TYPE_CHECKING:
    from datetime import datetime

MAX_CHECKPOINT_BYTES = 64 * 1024
MAX_MESSAGE_LENGTH = 500
MAX_LINE_LENGTH = 8_000
MAX_LOGGER_LENGTH = 200
MAX_LEVEL_LENGTH = 20
MAX_LOG_BYTES = 256 * 1024  # per attempt

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
OFF = "OFF"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is, as its newest attempt that said so put it."""

    fraction: float
    message: str
    attempt: int
    fence: int
    noted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that an attempt logged; its text may have several lines (a traceback)."""

    at: datetime
    level: str
    logger: str
    text: str
    attempt: int
    fence: int


class Listener(Protocol):
    """Whoever hears what an attempt says: a worker, the parent of an isolated child, a test. Values come checked.

    `checkpoint` returns when the checkpoint is durable and raises LeaseLost if the run belongs to someone else by now.
    `previous_success_at` is asked of attempts at an occurrence only.
    """

    def progress(self, fraction: float, message: str) -> None: ...

    def log(self, level: str, logger: str, text: str) -> None: ...

    async def checkpoint(self, data: bytes) -> None: ...

    def checkpoint_sync(self, data: bytes) -> None: ...

    async def previous_success_at(self) -> datetime | None: ...

    def previous_success_at_sync(self) -> datetime | None: ...


def checked_fraction(fraction: object) -> float:
    # NaN is not between anything.
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise invalid("progress", fraction, "must be a number from 0 to 1", "Divide what is done by what there is.")
    return float(fraction)


def checked_level(level: object, field: str = "level") -> str:
    name = level.upper() if isinstance(level, str) else logging.getLevelName(level) if isinstance(level, int) else ""
    if name not in LEVELS:
        raise invalid(field, level, f"must be one of {', '.join(LEVELS)}")
    return str(name)


def capture_level(level: object) -> int | None:
    """From which level on lines of `logging` are kept; None keeps none."""
    if isinstance(level, str) and level.upper() == OFF:
        return None
    try:
        return logging.getLevelNamesMapping()[checked_level(level, "capture_logs")]
    except InvalidInput:
        raise invalid("capture_logs", level, f"must be one of {', '.join((*LEVELS, OFF))}") from None


def one_line(text: object, limit: int) -> str:
    """Text of a job as it may be kept: bounded, on one line, storable."""
    return printable(" ".join(_text(text)[: 4 * limit].split()), limit)


def escaped(text: str) -> str:
    """What a terminal would act upon is written out, as in `\\x1b[31m`; line breaks too."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def some_lines(text: object) -> str:
    return printable(_text(text)[: MAX_LINE_LENGTH + 1], MAX_LINE_LENGTH)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # a hostile __str__ must not fail its attempt here
        return "(its text cannot be had)"
