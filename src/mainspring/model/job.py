"""Jobs as values, and the rules for names and options."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mainspring.clock import EPOCH
from mainspring.errors import InvalidInput
from mainspring.model.backlog import Backlog, checked_backlogs
from mainspring.model.breaker import Breaker, checked_breaker
from mainspring.model.chain import After, circular
from mainspring.model.concurrency import Limit, checked_limits
from mainspring.model.invalid import invalid
from mainspring.model.limits import checked_cpu, checked_memory
from mainspring.model.line import Delivery, Line
from mainspring.model.payload import quoted
from mainspring.model.policy import MICROSECOND, RetryPolicy
from mainspring.model.run import DEFAULT_PRIORITY, LEAST_URGENT, MOST_URGENT
from mainspring.model.unique import Debounce, Unique

MAX_NAME_LENGTH = 100
MAX_TAGS = 50
MAX_TAG_LENGTH = 100
MAX_KEY_LENGTH = 200
MAX_LABELS = 10
MAX_DELAY = timedelta(days=366 * 10)
MAX_CHUNK = 1_000
DEFAULT_CHUNK_WAIT, MAX_CHUNK_WAIT = timedelta(seconds=0.2), timedelta(seconds=60)
EARLIEST, LATEST = EPOCH, datetime(9000, 1, 1, tzinfo=UTC)

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.:/-]{{0,{MAX_NAME_LENGTH - 1}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefinition:
    """What a job is, as it is stored and versioned."""

    name: str
    queue: str = "default"
    priority: int = DEFAULT_PRIORITY
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_age: timedelta | None = None
    on_disconnect: str = "continue"
    isolated: bool = False
    memory: int | None = None  # bytes, beyond what the application itself takes
    cpu: timedelta | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    labels: tuple[str, ...] = ()
    timeout: timedelta | None = None  # of an attempt
    run_timeout: timedelta | None = None  # of all attempts, from the first start
    start_within: timedelta | None = None  # from when it is due
    command: tuple[str, ...] | None = None  # the program and its arguments, if it is one
    chunk: int | None = None  # how many runs one call of its handler gets at most; None: each has a call of its own
    chunk_wait: timedelta | None = None  # how long a run waits for others to share its call
    limit: tuple[Limit, ...] = ()  # how many of its runs may execute at once
    unique: Unique | None = None  # which of its runs are one
    debounce: Debounce | None = None
    after: tuple[After, ...] = ()  # jobs after whose runs one of this is submitted
    breaker: Breaker | None = None  # when its runs wait because too many fail
    backlog: tuple[Backlog, ...] = ()  # how many of its runs may wait

    def __post_init__(self) -> None:
        checked_name(self.name, "job")
        checked_name(self.queue, "queue")
        checked_priority(self.priority)
        checked_retry(self.retry)
        for name in ("max_age", "timeout", "run_timeout", "start_within"):
            object.__setattr__(self, name, checked_span(getattr(self, name), name))
        if self.on_disconnect not in ("continue", "stop"):
            raise invalid("on_disconnect", self.on_disconnect, "must be 'continue' or 'stop'")
        object.__setattr__(self, "delivery", checked_delivery(self.delivery))
        object.__setattr__(self, "labels", checked_labels(self.labels))
        object.__setattr__(self, "limit", checked_limits(self.limit))
        object.__setattr__(self, "backlog", checked_backlogs(self.backlog))
        check_unique(self.unique, self.debounce)
        self._check_after()
        checked_breaker(self.breaker)
        self._check_isolation()
        self._check_chunk()

    def _check_after(self) -> None:
        for each in self.after:
            checked_name(each.job, "after")
            if each.job == self.name:
                raise circular([self.name, self.name])
        if self.after and (self.unique or self.debounce):
            raise InvalidInput(
                f"Runs of {self.name} are unique or debounced, and follow other jobs: that does not go together.",
                code="unique-and-chained",
                hint="Leave out one of them; a limit keeps runs apart, too: limit=Limit(1).",
                field="after",
            )

    def _check_isolation(self) -> None:
        if not isinstance(self.isolated, bool):
            raise invalid("isolated", self.isolated, "must be True or False")
        checked_memory(self.memory)
        checked_cpu(self.cpu)
        for name in ("memory", "cpu"):
            if getattr(self, name) is not None and not self.isolated:
                raise InvalidInput(
                    f"{name} is limited, but the job is not isolated: only a process of its own can be held to it.",
                    code="limit-without-isolation",
                    hint="Add isolated=True.",
                    field=name,
                )

    def _check_chunk(self) -> None:
        if self.chunk is None and self.chunk_wait is not None:
            raise InvalidInput(
                f"chunk_wait is {quoted(self.chunk_wait)}, but runs of the job do not share calls: there is no chunk.",
                code="chunk-wait-without-chunk",
                hint="Add chunk=…, how many runs one call gets at most.",
                field="chunk_wait",
            )
        if self.chunk is None:
            return
        checked_chunk(self.chunk)
        object.__setattr__(self, "chunk_wait", checked_chunk_wait(self.chunk_wait))
        if self.isolated:
            raise InvalidInput(
                f"chunk is {self.chunk}, and the job is isolated: a process of its own is for one run.",
                code="chunk-isolated",
                hint="Leave out chunk, or isolated.",
                field="chunk",
            )
        if self.delivery is not Delivery.AT_LEAST_ONCE:
            raise InvalidInput(
                f"chunk is {self.chunk}, and delivery is {self.delivery.value!r}: such runs are claimed one at a time.",
                code="chunk-delivery",
                hint="Leave out chunk, or let runs be delivered at least once.",
                field="chunk",
            )

    @property
    def line(self) -> Line:
        """Where its runs wait unless told otherwise."""
        return Line(self.queue, self.labels, self.delivery)

    def as_document(self) -> dict[str, Any]:
        document = msgspec.to_builtins(self)
        assert isinstance(document, dict)
        if self.chunk is None:
            del document["chunk"], document["chunk_wait"]  # or every job of before would get a new version for nothing
        for name in ("limit", "after", "backlog"):
            if not document[name]:
                del document[name]
        for name in ("unique", "debounce", "breaker"):
            if document[name] is None:
                del document[name]
        return document


def definition_of(document: dict[str, Any]) -> JobDefinition:
    """A stored definition as a value again; what a newer program added to it is passed over."""
    return msgspec.convert(document, JobDefinition)


def checked_name(name: object, kind: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(kind, name, "must be 1 to 100 letters, digits or _ . : / - and begin with a letter, digit or _")
    return name


def checked_priority(priority: object) -> int:
    if not isinstance(priority, int) or isinstance(priority, bool) or not MOST_URGENT <= priority <= LEAST_URGENT:
        raise invalid("priority", priority, f"must be a whole number, {MOST_URGENT} (most urgent) to {LEAST_URGENT}")
    return priority


def checked_at(at: object, name: str = "at") -> datetime | None:
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise invalid(name, at, "must be a datetime")
    if at.utcoffset() is None:
        raise invalid(name, at, "must have a time zone: datetime(…, tzinfo=ZoneInfo('Europe/Berlin'))")
    if not EARLIEST <= at <= LATEST:
        raise invalid(name, at, f"must be between the years {EARLIEST.year} and {LATEST.year}")
    return at


def checked_delay(delay: object, name: str = "delay") -> float | None:
    seconds = _seconds(delay, name)
    if seconds is not None and not 0 <= seconds <= MAX_DELAY.total_seconds():
        raise invalid(name, delay, "must be from 0 to 10 years")
    return seconds


def checked_max_age(max_age: object) -> float | None:
    return checked_limit(max_age, "max_age")


def checked_retry(retry: object) -> RetryPolicy:
    if not isinstance(retry, RetryPolicy):
        raise invalid("retry", retry, "must be a RetryPolicy")
    return retry


def checked_span(limit: object, name: str) -> timedelta | None:
    """A limit as definitions keep it; in whole microseconds, as the database counts."""
    seconds = checked_limit(limit, name)
    return None if seconds is None else max(MICROSECOND, timedelta(seconds=seconds))


def checked_limit(limit: object, name: str) -> float | None:
    """How long something may take."""
    seconds = _seconds(limit, name)
    if seconds is not None and not 0 < seconds <= MAX_DELAY.total_seconds():
        raise invalid(name, limit, "must be more than 0 and at most 10 years")
    return seconds


def _seconds(span: object, name: str) -> float | None:
    if span is None:
        return None
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, (int, float)) and not isinstance(span, bool) and span == span:  # not NaN
        return float(max(-1, min(span, MAX_DELAY.total_seconds() + 1)))  # not every int fits into a float
    raise invalid(name, span, "must be a timedelta or a number of seconds")


def checked_chunk(chunk: object) -> int:
    if not isinstance(chunk, int) or isinstance(chunk, bool) or not 1 <= chunk <= MAX_CHUNK:
        raise invalid("chunk", chunk, f"must be a whole number from 1 to {MAX_CHUNK:,}")
    return chunk


def checked_chunk_wait(wait: object) -> timedelta:
    """Meanwhile a worker holds the runs, and nobody else can start them: so it is short."""
    seconds = _seconds(DEFAULT_CHUNK_WAIT if wait is None else wait, "chunk_wait")
    assert seconds is not None
    if not 0 <= seconds <= MAX_CHUNK_WAIT.total_seconds():
        raise invalid("chunk_wait", wait, f"must be from 0 to {MAX_CHUNK_WAIT.total_seconds():g} seconds")
    return timedelta(seconds=seconds)


def checked_tags(tags: object) -> list[str] | None:
    if tags is None:
        return None
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise invalid("tags", tags, "must be a list of strings")
    unique = list(dict.fromkeys(checked_text(tag, "tags", MAX_TAG_LENGTH) for tag in tags))
    if len(unique) > MAX_TAGS:
        raise invalid("tags", f"{len(unique)} tags", f"must be at most {MAX_TAGS}")
    return unique or None


def checked_labels(labels: object) -> tuple[str, ...]:
    """Labels that a worker must have, sorted: as a set, however they were given."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise invalid("labels", labels, "must be a set of strings")
    unique = sorted({checked_name(label, "label") for label in labels})
    if len(unique) > MAX_LABELS:
        raise invalid("labels", f"{len(unique)} labels", f"must be at most {MAX_LABELS}")
    return tuple(unique)


def checked_delivery(delivery: object) -> Delivery:
    try:
        return Delivery(delivery)  # type: ignore[arg-type]  # whatever was given
    except ValueError:
        raise invalid("delivery", delivery, f"must be one of {', '.join(Delivery)}") from None


def check_unique(unique: object, debounce: object, *, is_of_run: bool = False) -> None:
    """Which runs are one, as a job or, for one run, options say it; False leaves out what the job says."""
    no = (None, False) if is_of_run else (None,)
    for name, given, kind in (("unique", unique, Unique), ("debounce", debounce, Debounce)):
        if not isinstance(given, kind) and not any(given is each for each in no):
            raise invalid(name, given, f"must be a {kind.__name__}" + (", or False" if is_of_run else ""))
    if unique and debounce:
        raise InvalidInput(
            "unique and debounce are given: a run is answered with the first, or replaced by the last.",
            code="unique-and-debounce",
            hint="Give one of them.",
            field="debounce",
        )


def checked_key(key: object) -> str | None:
    return None if key is None else checked_text(key, "key", MAX_KEY_LENGTH)


def checked_reason(reason: object) -> str:
    return "" if reason == "" else checked_text(reason, "reason", 1000)


def checked_text(text: object, name: str, longest: int) -> str:
    """Text that a store can keep and a message can show."""
    if not isinstance(text, str) or not 0 < len(text) <= longest:
        raise invalid(name, text, f"must be a string of 1 to {longest} characters")
    try:
        storable = "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        storable = False
    if not storable:
        raise invalid(name, text, "must be free of NUL and lone surrogate characters")
    return text


def content_digest(*parts: object) -> bytes:
    """What makes two submissions with one idempotency key the same."""
    return hashlib.sha256(msgspec.json.encode(parts)).digest()
