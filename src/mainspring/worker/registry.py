"""Handlers by registered name: nothing stored in a database is ever imported or looked up any other way."""

from __future__ import annotations

import inspect
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidInput, JobNotFound, did_you_mean
from mainspring.model.arguments import Arguments, hints_of
from mainspring.model.chain import circular, cycle_through
from mainspring.model.chunk import ChunkArguments, answer_type_of
from mainspring.model.payload import MAX_PAYLOAD_BYTES, encode
from mainspring.model.results import PLAIN, ReturnType, return_type_of
from mainspring.worker.chunk import Chunk, for_one_run
from mainspring.worker.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mainspring.model.command import Command
    from mainspring.model.job import JobDefinition
    from mainspring.model.line import Line


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that can execute the runs of one job."""

    definition: JobDefinition
    function: Callable[..., Any]
    arguments: Arguments
    returns: ReturnType
    is_async: bool
    needs_thread: bool = False  # it is called in one: not async, and without a process of its own
    is_timed: bool = False  # its attempts may take only so long
    command: Command | None = None  # what an isolated child becomes, instead of calling the function
    capture_level: int | None = None  # from which level on lines of `logging` are kept; None keeps none
    chunk: Chunk | None = None  # how it is called for several runs at once; `function` is for one

    @property
    def name(self) -> str:
        return self.definition.name


def handler_of(definition: JobDefinition, function: Callable[..., Any], command: Command | None = None) -> Handler:
    name, is_async = definition.name, inspect.iscoroutinefunction(function)
    if definition.chunk is not None:
        return _chunk_handler_of(definition, function)
    return Handler(
        definition,
        function,
        Arguments(name, function),
        return_type_of(name, hints_of(name, function), definition.delivery),
        is_async,
        needs_thread=not is_async and not definition.isolated,
        is_timed=_is_timed(definition),
        command=command,
    )


def _chunk_handler_of(definition: JobDefinition, function: Callable[..., Any]) -> Handler:
    name, is_async = definition.name, inspect.iscoroutinefunction(function)
    assert definition.chunk is not None
    assert definition.chunk_wait is not None
    return Handler(
        definition,
        for_one_run(name, function),
        ChunkArguments(name, function),
        answer_type_of(name, hints_of(name, function)),
        is_async,
        needs_thread=not is_async,
        is_timed=_is_timed(definition),
        chunk=Chunk(function, definition.chunk, definition.chunk_wait.total_seconds()),
    )


def _is_timed(definition: JobDefinition) -> bool:
    return definition.timeout is not None or definition.run_timeout is not None


class Registry:
    """The handlers of one application."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self.environment = Environment()

    def add(self, handler: Handler) -> None:
        if handler.name in self._handlers:
            raise InvalidInput(
                f"A job named {handler.name!r} is already registered.",
                code="duplicate-job",
                hint="Give one of them another name: @app.job(name=…).",
                field="name",
                value=handler.name,
            )
        self.environment.check(handler.arguments.injected.values())
        if handler.definition.after:
            self._check_after(handler)
        self._handlers[handler.name] = handler

    def _check_after(self, handler: Handler) -> None:
        """Whoever submits it after others gives it their results, and nothing else."""
        for each in handler.definition.after:
            handler.arguments.check_following(each.job, each.result)
        follows: defaultdict[str, list[str]] = defaultdict(list)
        for one in (*self, handler):
            for each in one.definition.after:
                follows[each.job].append(one.name)
        cycle = cycle_through(handler.name, follows)
        if cycle is not None:
            raise circular(cycle)

    def find(self, name: str) -> Handler:
        try:
            return self._handlers[name]
        except KeyError:
            raise JobNotFound(
                f"This application has no job named {name!r}.",
                hint=did_you_mean(name, self._handlers),
                field="job",
            ) from None

    # ── as services see it (control.application.Application) ────────────────────────────────────────────────

    def definition_of(self, job: str) -> JobDefinition | None:
        """What the application says about a job, if it is one of its own."""
        handler = self._handlers.get(job)
        return None if handler is None else handler.definition

    def followers_of(self, job: str) -> list[JobDefinition]:
        """The application's jobs that follow this one, and those that follow them."""
        found: dict[str, JobDefinition] = {}
        upstream = [job]
        while upstream:
            name = upstream.pop()
            for each in self:
                if each.name not in found and any(after.job == name for after in each.definition.after):
                    found[each.name] = each.definition
                    upstream.append(each.name)
        return list(found.values())

    def encode(self, job: str, arguments: Mapping[str, Any]) -> bytes:
        """Arguments as a payload: checked if the job is the application's own, else when the run starts."""
        handler = self._handlers.get(job)
        if handler is None:
            return encode(arguments, what="payload", limit=MAX_PAYLOAD_BYTES)
        return handler.arguments.encode((), arguments)

    def returns_of(self, job: str) -> ReturnType:
        """How results of a job are read here: as plain JSON values, if it is none of this application's."""
        handler = self._handlers.get(job)
        return PLAIN if handler is None else handler.returns

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def __contains__(self, name: object) -> bool:
        return name in self._handlers

    def __len__(self) -> int:
        return len(self._handlers)

    @property
    def names(self) -> list[str]:
        return sorted(self._handlers)

    @property
    def lines(self) -> set[Line]:
        return {handler.definition.line for handler in self}

    @property
    def capture_level(self) -> int | None:
        """The lowest level of which any handler wants lines kept."""
        levels = [handler.capture_level for handler in self if handler.capture_level is not None]
        return min(levels, default=None)

    @property
    def queues(self) -> list[str]:
        return sorted({handler.definition.queue for handler in self})
