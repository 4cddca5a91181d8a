"""What `@app.job` refuses at once: things that are no handlers, and options that there are not."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn

from mainspring.errors import InvalidInput, did_you_mean
from mainspring.model.job import JobDefinition
from mainspring.model.payload import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# What `@app.job` says about a schedule of the job's own.
SCHEDULE_OPTIONS = frozenset(
    (
        *("schedule", "zone", "spread", "starts_at", "ends_at", "max_runs", "calendars"),
        *("catch_up", "overlap", "pause_after_failures"),
    )
)
OPTIONS = {field.name for field in fields(JobDefinition)} - {"command"} | {"capture_logs", "on"} | SCHEDULE_OPTIONS

# What other libraries call it.
_SYNONYMS = (
    dict.fromkeys(
        ("retries", "max_retries", "max_attempts", "attempts", "retry_count"), "retry=RetryPolicy(max_attempts=…)"
    )
    | dict.fromkeys(("time_limit", "soft_time_limit", "job_timeout"), "timeout=…")
    | dict.fromkeys(("batch", "batch_size", "flush_every", "bulk"), "chunk=…")
    | dict.fromkeys(("batch_wait", "flush_interval", "linger"), "chunk_wait=…")
)


def checked_function(function: Any) -> Callable[..., Any]:
    """A function whose call is the work, or an error that says why this is none."""
    if inspect.isclass(function):
        _refuse(function, "is a class", "Decorate a function that makes one and does the work.")
    if not inspect.isroutine(function) or not hasattr(function, "__name__"):
        _refuse(function, "is not a function", "Decorate one: @app.job above def or async def.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _refuse(
            function, "is a generator: calling it does nothing yet", "Return a list, or submit a run for each item."
        )
    return function


def check_options(given: Iterable[str]) -> None:
    """Refuse an option that jobs do not have."""
    for name in given:
        if name not in OPTIONS:
            meant = _SYNONYMS.get(name)
            raise InvalidInput(
                f"Jobs have no option {name!r}.",
                code="unknown-option",
                hint=f"Did you mean {meant}?" if meant else did_you_mean(name, OPTIONS),
                field=name,
            )


def _refuse(function: Any, reason: str, hint: str) -> NoReturn:
    name = getattr(function, "__qualname__", None) or quoted(function)
    raise InvalidInput(f"{name} cannot be a job: it {reason}.", code="invalid-handler", hint=hint, value=name)
