"""How one run may differ from what its job says: what `submit` takes besides the arguments."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime  # noqa: TC003  msgspec reads the annotations
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model import job as rules
from mainspring.model.dependency import Parent, checked_parents
from mainspring.model.fan_out import checked_child, refused_child
from mainspring.model.headers import checked_headers
from mainspring.model.line import Delivery, Line
from mainspring.model.policy import NO_OVERRIDES, Overrides
from mainspring.model.unique import Debounce, Unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import timedelta

    from mainspring.model.dependency import Condition, Otherwise
    from mainspring.model.job import JobDefinition
    from mainspring.model.policy import RetryPolicy


class SubmitKeywords(TypedDict, total=False):
    """What `SubmitOptions.checked` takes, for calls that pass it on."""

    at: datetime | None
    delay: timedelta | float | None
    priority: int | None
    queue: str | None
    labels: Iterable[str] | None
    delivery: Delivery | str | None
    tags: Iterable[str] | None
    key: str | None
    max_age: timedelta | float | None
    retry: RetryPolicy | None
    timeout: timedelta | float | None
    run_timeout: timedelta | float | None
    start_within: timedelta | float | None
    headers: Mapping[str, str] | None
    after: object
    on: Condition | str | None
    otherwise: Otherwise | str | None
    unique: Unique | bool | None
    debounce: Debounce | bool | None
    child: str | bool | None
    may_fail: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """How a run differs from what its job says; None leaves what the job says. Made by `checked`."""

    at: datetime | None = None
    delay: float | None = None
    priority: int | None = None
    queue: str | None = None
    labels: tuple[str, ...] | None = None
    delivery: Delivery | None = None
    tags: tuple[str, ...] | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    max_age: float | None = None
    start_within: float | None = None
    overrides: Overrides = NO_OVERRIDES
    after: tuple[Parent, ...] | None = None  # which runs have to end before
    unique: Unique | bool | None = None  # False: not, whatever the job says
    debounce: Debounce | bool | None = None
    child: str | bool | None = None  # of the run whose handler submits it; by which name, if it has one
    may_fail: bool | None = None

    @classmethod
    def checked(
        cls,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        priority: int | None = None,
        queue: str | None = None,
        labels: Iterable[str] | None = None,
        delivery: Delivery | str | None = None,
        tags: Iterable[str] | None = None,
        key: str | None = None,
        max_age: timedelta | float | None = None,
        retry: RetryPolicy | None = None,
        timeout: timedelta | float | None = None,
        run_timeout: timedelta | float | None = None,
        start_within: timedelta | float | None = None,
        headers: Mapping[str, str] | None = None,
        after: object = None,
        on: Condition | str | None = None,
        otherwise: Otherwise | str | None = None,
        unique: Unique | bool | None = None,
        debounce: Debounce | bool | None = None,
        child: str | bool | None = None,
        may_fail: bool | None = None,
    ) -> SubmitOptions:
        """Options as they were given, or an error that names the one that breaks a rule."""
        if at is not None and delay is not None:
            raise _at_and_delay()
        rules.check_unique(unique, debounce, is_of_run=True)
        child, may_child_fail = checked_child(child, may_fail)
        checked_tags = rules.checked_tags(tags)
        return cls(
            at=rules.checked_at(at),
            delay=rules.checked_delay(delay),
            priority=None if priority is None else rules.checked_priority(priority),
            queue=None if queue is None else rules.checked_name(queue, "queue"),
            labels=None if labels is None else rules.checked_labels(labels),
            delivery=None if delivery is None else rules.checked_delivery(delivery),
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
            after=checked_parents(after, on, otherwise),
            unique=unique,
            debounce=debounce,
            child=child,
            may_fail=may_child_fail,
        )

    def as_document(self) -> dict[str, Any]:
        """As a schedule keeps them: what was given, as plain JSON."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        document["overrides"] = {name: value for name, value in document["overrides"].items() if value is not None}
        return {name: value for name, value in document.items() if value is not None and value != {}}

    def line_of(self, definition: JobDefinition) -> Line:
        """Where a run of this job with these options waits."""
        own = definition.line
        labels = own.labels if self.labels is None else self.labels
        delivery = self.delivery
        if delivery is None or self._is_of_handler(own.delivery):  # which the job may have become since
            delivery = own.delivery
        return Line(self.queue or own.queue, labels, delivery)

    def checked_line_of(self, definition: JobDefinition) -> Line:
        """The same for options that somebody gives now: refused if the job's handler cannot do what they say."""
        self.check_for(definition)
        return self.line_of(definition)

    def _is_of_handler(self, own: Delivery) -> bool:
        return Delivery.TRANSACTIONAL in (self.delivery, own)

    def uniqueness_for(self, definition: JobDefinition) -> Unique | Debounce | None:
        """Which runs are one: as these options say, if they say anything about it, else as the job does."""
        if self.unique is None and self.debounce is None:
            return definition.unique or definition.debounce
        given = self.unique or self.debounce
        return None if isinstance(given, bool) else given

    def check_for(self, definition: JobDefinition) -> None:
        self._check_uniqueness(definition)
        self._check_child(definition)
        own = definition.delivery
        if self.delivery is None or self.delivery is own:
            return
        if self._is_of_handler(own):
            raise _of_handler(self.delivery, definition)
        if definition.chunk is not None:
            raise _of_chunks(self.delivery, definition)

    def _check_child(self, definition: JobDefinition) -> None:
        if self.child is not None and self.key is not None:
            raise refused_child(
                "and a key: children are known by their names",
                code="key-of-child",
                hint='Leave out the key, or make a name of it: options(child="…").',
            )
        if self.child is not None and self.uniqueness_for(definition) is not None:
            raise refused_child(
                f"and runs of {definition.name} are unique or debounced: another run may stand for it",
                code="unique-child",
                hint="Leave out child, or add unique=False or debounce=False.",
            )

    def _check_uniqueness(self, definition: JobDefinition) -> None:
        uniqueness = self.uniqueness_for(definition)
        if uniqueness is not None and self.key is not None:
            raise _key_and_unique(definition)
        if isinstance(uniqueness, Debounce) and (self.at is not None or self.delay is not None):
            raise _debounced_at(definition)


def _key_and_unique(definition: JobDefinition) -> InvalidInput:
    return InvalidInput(
        f"An idempotency key was given, and runs of {definition.name} are unique or debounced: which run a submission"
        " stands for is said by one of the two.",
        code="key-and-unique",
        hint="Leave out the key, or add unique=False or debounce=False.",
        field="key",
    )


def _debounced_at(definition: JobDefinition) -> InvalidInput:
    return InvalidInput(
        f"at or delay was given, and runs of {definition.name} are debounced: they start when their period is over.",
        code="debounce-with-time",
        hint="Leave it out, or add debounce=False.",
        field="delay",
    )


def _of_handler(delivery: Delivery, definition: JobDefinition) -> InvalidInput:
    """A handler finishes its runs in its own transaction, or by returning, whoever submits them."""
    return InvalidInput(
        f"delivery is {delivery.value!r}, and runs of {definition.name} are delivered {definition.delivery.value!r}:"
        " whether a run is finished inside a transaction is the handler's choice.",
        code="delivery-of-handler",
        hint="Leave it out, or define another job for it.",
        field="delivery",
        value=delivery.value,
        rule="must be at_least_once or at_most_once, of a job that is not transactional",
    )


def _of_chunks(delivery: Delivery, definition: JobDefinition) -> InvalidInput:
    return InvalidInput(
        f"delivery is {delivery.value!r}, and calls of {definition.name} get several runs, which are claimed together.",
        code="chunk-delivery",
        hint="Leave it out, or define a job without chunk for it.",
        field="delivery",
        value=delivery.value,
    )


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
