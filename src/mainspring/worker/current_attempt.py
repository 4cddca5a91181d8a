"""Which attempt the present code belongs to, said by a context variable; and the lines it writes with `logging`.

Each handler runs in a context of its own, and so do the tasks it makes, the thread it runs in, and the blocking calls
it makes to us. Threads that a handler starts by itself belong to nobody, and are not heard.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mainspring.model.report import MAX_LEVEL_LENGTH, MAX_LOGGER_LENGTH, one_line, some_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mainspring.model.actor import Tenant

# A worker sets it to the Work; the process of an isolated run and inline mode to objects of theirs.
CURRENT_ATTEMPT: ContextVar[Any] = ContextVar("mainspring_attempt", default=None)


def current_tenant() -> Tenant | None:
    """Whose run the present code belongs to; None if to nobody's."""
    attempt = CURRENT_ATTEMPT.get()
    return None if attempt is None else attempt.tenant


OURS = "mainspring."  # loggers of this package: what they say is no line of the handler
_FORMATTER = logging.Formatter()


class Capture(logging.Handler):
    """Calls `hear(attempt, record)` for every line that an attempt logs, attempt by attempt."""

    def __init__(self, hear: Callable[[Any, logging.LogRecord], None]) -> None:
        super().__init__()
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        if (attempt := CURRENT_ATTEMPT.get()) is not None and not record.name.startswith(OURS):
            self._hear(attempt, record)
        # Where nobody configured logging, only our being here keeps Python from printing warnings as it would.
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and logging.getLogger().handlers == [self]:
            last.handle(record)


@contextmanager
def captured(hear: Callable[[Any, logging.LogRecord], None], least: int | None) -> Iterator[None]:
    """Listen for as long as this lasts, to lines of level `least` and above; None: do not listen.

    Where logging is configured, that configuration decides what is logged at all. Where it is not, it lets through
    what we listen for.
    """
    root = logging.getLogger()
    if least is None:
        yield
        return
    is_unconfigured = not root.handlers and root.level == logging.WARNING
    if is_unconfigured:
        root.setLevel(least)
    capture = Capture(hear)
    root.addHandler(capture)
    try:
        yield
    finally:
        root.removeHandler(capture)
        if is_unconfigured:
            root.setLevel(logging.WARNING)


def words_of(record: logging.LogRecord) -> tuple[str, str, str]:
    """Level, logger and text of a line, as they may be kept."""
    return (
        one_line(record.levelname, MAX_LEVEL_LENGTH),
        one_line(record.name, MAX_LOGGER_LENGTH),
        some_lines(_text_of(record)),
    )


def _text_of(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}\n{_FORMATTER.formatException(record.exc_info)}"
        if record.stack_info:
            text = f"{text}\n{record.stack_info}"
    except Exception:  # arguments that do not fit, a hostile __str__: the handler must not fail by a log line
        return f"(this line cannot be formatted) {record.msg!r}"[:1000] if isinstance(record.msg, str) else "(…)"
    return text
