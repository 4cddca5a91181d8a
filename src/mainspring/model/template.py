"""Everything about new runs of one job but their payloads: built once, filled for each run."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mainspring.errors import InvalidInput, UniqueConflict
from mainspring.model.backlog import backlog_gates_of
from mainspring.model.concurrency import gates_of
from mainspring.model.dependency import check_nodes
from mainspring.model.invalid import say_which
from mainspring.model.job import content_digest
from mainspring.model.run import NewRun
from mainspring.model.unique import Debounce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from mainspring.model.actor import Actor
    from mainspring.model.backlog import CapRule
    from mainspring.model.concurrency import LimitRule
    from mainspring.model.dependency import Parent
    from mainspring.model.job import JobDefinition
    from mainspring.model.line import Delivery, Line
    from mainspring.model.options import SubmitOptions
    from mainspring.model.unique import Unique

AWAITS = "awaits"
_PAYLOAD = NewRun._fields.index("payload")


class Numbers(NamedTuple):
    """The numbers by which an installation knows a job, its version, and the line its runs wait in."""

    job_id: int
    job_version: int
    line_id: int


class Template(NamedTuple):
    """A run without its payload, and the names behind its numbers, which the digest of its content contains."""

    job: str
    line: Line
    run: NewRun
    delivery: Delivery | None = None  # if it was given
    rules: tuple[LimitRule, ...] = ()  # the limits that its runs are under
    uniqueness: Unique | Debounce | None = None
    caps: tuple[CapRule, ...] = ()  # of backlogs that its runs wait in

    def filled(self, payload: bytes, *, is_accepted: bool = False) -> NewRun:
        """`is_accepted`: it comes in any case, and is not refused for what a cap counts by."""
        digest = None if self.run.key is None else self._digest(payload)
        run = self.run._replace(payload=payload, digest=digest, gates=self._gates(payload), headers=self._headers())
        if self.caps:
            run = run._replace(backlog=self._backlog(payload, is_accepted))
        if self.uniqueness is None:
            return run
        wish = self.uniqueness.wish_for(payload)
        return run._replace(wish=wish, delay=wish.seconds if isinstance(self.uniqueness, Debounce) else run.delay)

    def _backlog(self, payload: bytes, is_accepted: bool) -> str | None:
        is_complete = not self._awaits_arguments
        return backlog_gates_of(self.caps, payload, is_complete=is_complete, is_accepted=is_accepted)

    def _gates(self, payload: bytes) -> str | None:
        """None where arguments are still to come that may decide about them: then whoever claims the run looks."""
        return None if self._awaits_arguments else gates_of(self.rules, payload)

    @property
    def _awaits_arguments(self) -> bool:
        return any(parent.inputs for parent in self.run.after or ())

    def _headers(self) -> str | None:
        """With the arguments that are still to come: whoever runs it again before that has to give them."""
        awaited = sorted({str(path[0]) for parent in self.run.after or () for path in parent.inputs})
        if not awaited:
            return self.run.headers
        headers = {} if self.run.headers is None else msgspec.json.decode(self.run.headers)
        return msgspec.json.encode({**headers, AWAITS: " ".join(awaited)}).decode()

    def waiting_for(self, parents: tuple[Parent, ...]) -> Template:
        """The same for a run that waits for others."""
        return self._replace(run=self.run._replace(after=parents)) if parents else self

    def keyed(self, key: str) -> Template:
        """The same for a run with this idempotency key."""
        return self._replace(run=self.run._replace(key=key))

    def with_headers(self, more: Mapping[str, str]) -> Template:
        """The same for a run with more headers."""
        headers = {} if self.run.headers is None else msgspec.json.decode(self.run.headers)
        return self._replace(run=self.run._replace(headers=msgspec.json.encode({**headers, **more}).decode()))

    def filled_many(self, payloads: Sequence[bytes]) -> list[NewRun]:
        """One run without a key per payload. Cut and joined by hand: `_replace` costs a batch a microsecond per run."""
        if self.rules or self.caps or self.uniqueness is not None:
            return filled_in_turn(repeat(self, len(payloads)), payloads)
        before, after = self.run[:_PAYLOAD], self.run[_PAYLOAD + 1 :]
        return [NewRun._make((*before, payload, *after)) for payload in payloads]

    def _digest(self, payload: bytes) -> bytes:
        """What makes two submissions with one idempotency key the same."""
        run = self.run
        content = (self.job, payload.decode(), self.line.queue, run.priority, run.tags)
        return content_digest(*content, run.at, run.delay, run.max_age, *self._since_then())

    def _since_then(self) -> Iterator[object]:
        """What content has besides what it always had: without it, the digest that older programs computed."""
        if self.line.labels:
            yield self.line.labels
        if self.run.start_within is not None or self.run.overrides is not None:
            yield {"start_within": self.run.start_within, "overrides": self.run.overrides}
        if self.delivery is not None:
            yield {"delivery": self.delivery.value}
        if self.run.after is not None:
            yield {"after": self.run.after}


def filled_in_turn(templates: Iterable[Template], payloads: Sequence[bytes]) -> list[NewRun]:
    """One run per template and payload; of several, an error says which."""
    runs = []
    for item, (template, payload) in enumerate(zip(templates, payloads, strict=True)):
        try:
            runs.append(template.filled(payload))
        except InvalidInput as error:
            if len(payloads) > 1:
                say_which(error, f"Item {item}", item=item)
            raise
    return runs


def template_of(
    definition: JobDefinition,
    options: SubmitOptions,
    numbers: Numbers,
    *,
    actor: Actor,
    trace: Mapping[str, str],
    rules: tuple[LimitRule, ...] = (),
    caps: tuple[CapRule, ...] = (),
) -> Template:
    """All that the job and the options say about a run. `trace` is the context of whoever submits it."""
    run = NewRun(
        tenant_id=actor.tenant,
        job_id=numbers.job_id,
        job_version=numbers.job_version,
        line_id=numbers.line_id,
        priority=definition.priority if options.priority is None else options.priority,
        payload=b"",
        headers=_headers(options.headers, trace),
        tags=None if options.tags is None else list(options.tags),
        submitted_by=actor.name,
        at=options.at,
        delay=options.delay,
        max_age=options.max_age or _seconds(definition.max_age),
        key=options.key,
        start_within=options.start_within or _seconds(definition.start_within),
        overrides=options.overrides.as_json(),
        after=options.after,
    )
    check_nodes(options.after or ())
    uniqueness = options.uniqueness_for(definition)
    if uniqueness is not None and options.after is not None:
        raise unique_and_waiting(definition.name, "after")
    return Template(definition.name, options.line_of(definition), run, options.delivery, rules, uniqueness, caps)


def unique_and_waiting(job: str, field: str) -> InvalidInput:
    """Its arguments, and so its key, may be known only when those it waits for have ended."""
    return InvalidInput(
        f"Runs of {job} are unique or debounced, and one of them is to wait for others: that does not go together.",
        code="unique-and-waiting",
        hint="Leave out one of them: options(unique=False), options(debounce=False), or after.",
        field=field,
    )


def check_repeated(runs: Iterable[NewRun]) -> None:
    """Refuse a batch in which two want one unique key and no other run instead."""
    places: dict[str, int] = {}
    for place, run in enumerate(runs):
        if run.wish is None or not run.wish.refuses:
            return  # they are all alike
        before = places.setdefault(run.wish.key, place)
        if before != place:
            raise UniqueConflict(
                f"Items {before} and {place} have the same unique key, {run.wish.shown}; nothing was accepted.",
                code="unique-key-repeated",
                hint="Leave one of them out.",
                items=[before, place],
            )


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _headers(given: Mapping[str, str] | None, trace: Mapping[str, str]) -> str | None:
    """What travels with the run: what was given, and the trace context unless that was given too."""
    if given is not None:
        trace = given if "traceparent" in given else {**trace, **given}
    return msgspec.json.encode(trace).decode() if trace else None
