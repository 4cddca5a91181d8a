"""Where log lines go. In our own programs to stderr, from a chosen level on, for stdout belongs to results; inside
other people's programs through `logging`, like those of any library.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

import structlog

from mainspring.errors import InvalidInput
from mainspring.model.payload import quoted
from mainspring.model.report import escaped

if TYPE_CHECKING:
    from collections.abc import MutableMapping

FORMAT_VARIABLE = "MAINSPRING_LOG_FORMAT"
LEVEL_VARIABLE = "MAINSPRING_LOG_LEVEL"
LEVELS = ("debug", "info", "warning", "error")
DEFAULT_LEVEL = "info"


def log_to_stderr(*, as_json: bool | None = None) -> None:
    """As JSON or for people; what is decided here holds for child processes too."""
    if as_json is None:
        as_json = os.environ.get(FORMAT_VARIABLE) == "json"
    os.environ[FORMAT_VARIABLE] = "json" if as_json else "text"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=True),
            structlog.processors.format_exc_info,
            *(_as_json() if as_json else _for_people()),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _Stderr(sys.stderr))),
    )
    log_from(os.environ.get(LEVEL_VARIABLE) or DEFAULT_LEVEL)


def log_from(level: str) -> None:
    """Write lines of this level and above, here and in child processes."""
    if level.lower() not in LEVELS:
        raise _invalid(level)
    os.environ[LEVEL_VARIABLE] = level.lower()
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(number))


# ── inside other people's programs ──────────────────────────────────────────────────────────────────────────────


def log_through_logging() -> None:
    """Unless somebody has decided otherwise: structlog by itself would print every line to stdout."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.stdlib.filter_by_level, _as_record],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=_LibraryLogger,
        )


class _LibraryLogger(structlog.stdlib.BoundLogger):
    """Named after its module; whether a level is written is for the program's own configuration to say."""

    def is_enabled_for(self, level: int) -> bool:
        return bool(self._logger.isEnabledFor(level))


def _as_record(
    _logger: object, _method: str, fields: MutableMapping[str, Any]
) -> tuple[tuple[str, str], dict[str, Any]]:
    event, exc_info = fields.pop("event"), fields.pop("exc_info", None)
    words = [event, *(f"{name}={escaped(str(value))}" for name, value in fields.items())]
    return ("%s", " ".join(words)), {"exc_info": exc_info}


# ── in ours ─────────────────────────────────────────────────────────────────────────────────────────────────────


class _Stderr:
    """A line that cannot be written, to a full disk or to nobody, is lost: it is not worth a worker."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._file.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()


def _as_json() -> list[Any]:
    return [structlog.processors.JSONRenderer()]  # in ASCII: nothing in it moves a cursor


def _for_people() -> list[Any]:
    return [_escape, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)]


def _escape(_logger: object, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Errors and names come from anywhere: none of them begins a line of its own or steers a terminal."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = _escaped_lines(value) if name == "exception" else escaped(value)
    return fields


def _escaped_lines(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


def _invalid(level: str) -> InvalidInput:
    rule = f"must be one of {', '.join(LEVELS)}"
    return InvalidInput(
        f"The log level is {quoted(level)}; it {rule}.",
        code="invalid-log-level",
        hint=f"Choose it by --log-level or {LEVEL_VARIABLE}.",
        field="log_level",
        value=quoted(level),
        rule=rule,
    )
