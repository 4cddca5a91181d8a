"""How one run may differ from what its job says: what `submit` takes besides the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  msgspec reads the annotations
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model import job as rules
from mainspring.model.headers import checked_headers
from mainspring.model.line import Line
from mainspring.model.policy import NO_OVERRIDES, Overrides

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from mainspring.model.job import JobDefinition
    from mainspring.model.policy import RetryPolicy


class SubmitKeywords(TypedDict, total=False):
    """What `SubmitOptions.checked` takes, for calls that pass it on."""

    at: datetime | None
    delay: timedelta | float | None
    priority: int | None
    queue: str | None
    labels: Iterable[str] | None
    tags: Iterable[str] | None
    key: str | None
    max_age: timedelta | float | None
    retry: RetryPolicy | None
    timeout: timedelta | float | None
    run_timeout: timedelta | float | None
    start_within: timedelta | float | None
    headers: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """How a run differs from what its job says; None leaves what the job says. Made by `checked`."""

    at: datetime | None = None
    delay: float | None = None
    priority: int | None = None
    queue: str | None = None
    labels: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    max_age: float | None = None
    start_within: float | None = None
    overrides: Overrides = NO_OVERRIDES

    @classmethod
    def checked(
        cls,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        queue: str | None = None,
        labels: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        key: str | None = None,
        max_age: timedelta | float | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        start_within: timedelta | float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> SubmitOptions:
        """Options as they were given, or an error that names the one that breaks a rule."""
        if at is not None and delay is not None:
            raise _at_and_delay()
        checked_tags = rules.checked_tags(tags)
        return cls(
            at=rules.checked_at(at),
            delay=rules.checked_delay(delay),
            priority=None if priority is None else rules.checked_priority(priority),
            queue=None if queue is None else rules.checked_name(queue, "queue"),
            labels=None if labels is None else rules.checked_labels(labels),
            tags=None if checked_tags is None else tuple(checked_tags),
            key=rules.checked_key(key),
            headers=checked_headers(headers),
            max_age=rules.checked_max_age(max_age),
            start_within=rules.checked_limit(start_within, "start_within"),
            overrides=Overrides(
                retry=None if retry is None else rules.checked_retry(retry),
                timeout=rules.checked_span(timeout, "timeout"),
                run_timeout=rules.checked_span(run_timeout, "run_timeout"),
            ),
        )

    def as_document(self) -> dict[str, Any]:
        """As a schedule keeps them: what was given, as plain JSON."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        document["overrides"] = {name: value for name, value in document["overrides"].items() if value is not None}
        return {name: value for name, value in document.items() if value is not None and value != {}}

    def line_of(self, definition: JobDefinition) -> Line:
        """Where a run of this job with these options waits."""
        own = definition.line
        return Line(self.queue or own.queue, own.labels if self.labels is None else self.labels, own.delivery)


def options_of(document: dict[str, Any]) -> SubmitOptions:
    """Options as they were kept."""
    return msgspec.convert(document, SubmitOptions)


def _at_and_delay() -> InvalidInput:
    return InvalidInput(
        "Both at and delay were given; a run starts at one time.",
        code="at-and-delay",
        hint="Give one of them.",
        field="delay",
    )


NO_OPTIONS = SubmitOptions()
