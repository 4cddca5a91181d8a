"""Where log lines go: to stderr, for stdout belongs to results."""

from __future__ import annotations

import os
import sys

import structlog

FORMAT_VARIABLE = "MAINSPRING_LOG_FORMAT"


def log_to_stderr(*, as_json: bool | None = None) -> None:
    """As JSON or for people; what is decided here holds for child processes too."""
    if as_json is None:
        as_json = os.environ.get(FORMAT_VARIABLE) == "json"
    os.environ[FORMAT_VARIABLE] = "json" if as_json else "text"
    is_terminal = sys.stderr.isatty()
    renderer = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=is_terminal, pad_event_to=0)
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso" if as_json else "%H:%M:%S", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
    )
