"""What surrounds handlers: start-up and shutdown hooks, resources that are opened once, middleware around attempts.

An application defines it once; each worker process, and each process of an isolated run, opens it for itself:
start hooks in the order of their definition, then resources in theirs; at the end resources in reverse, then stop
hooks in reverse.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from mainspring.model.context import Context
    from mainspring.model.resource import Resource

    Hook = Callable[[], Any]
    CallNext = Callable[[], Awaitable[Any]]
    Middleware = Callable[[Context, CallNext], Awaitable[Any]]

log = structlog.get_logger()


class Surroundings:
    """An environment that is open: values of resources, and the middleware, the outermost first."""

    def __init__(self, values: Mapping[Resource[Any], Any], middleware: Sequence[Middleware]) -> None:
        self._values = values
        self.middleware = tuple(middleware)

    def given(self, needs: Mapping[str, Resource[Any]]) -> dict[str, Any]:
        return {name: self._values[resource] for name, resource in needs.items()}

    async def around(self, context: Context, call: CallNext) -> Any:
        """Call through all middleware."""
        for middleware in reversed(self.middleware):
            call = partial(middleware, context, call)
        return await call()


NOTHING = Surroundings({}, ())


class Environment:
    """What an application defines."""

    def __init__(self) -> None:
        self.start_hooks: list[Hook] = []
        self.stop_hooks: list[Hook] = []
        self.resources: list[Resource[Any]] = []
        self.middleware: list[Middleware] = []

    def add_middleware(self, middleware: Middleware) -> None:
        if not inspect.iscoroutinefunction(middleware):
            raise InvalidInput(
                f"Middleware must be async: {getattr(middleware, '__name__', middleware)!r} is not.",
                code="invalid-middleware",
                hint="Write: async def middleware(context, call_next): … return await call_next()",
            )
        self.middleware.append(middleware)

    def check(self, needs: Iterable[Resource[Any]]) -> None:
        """Refuse a resource that nobody will open."""
        for resource in needs:
            if resource not in self.resources:
                raise InvalidInput(
                    f"The resource {resource.name} does not belong to this application.",
                    code="foreign-resource",
                    hint="Define it with @app.resource of the application whose handlers use it.",
                    resource=resource.name,
                )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing that handlers could notice: then they are called without all this."""
        return not (self.resources or self._all_middleware())

    @property
    def has_hooks(self) -> bool:
        return bool(self.start_hooks or self.stop_hooks)

    def _all_middleware(self) -> list[Middleware]:
        """Spans outermost, where somebody in this process uses OpenTelemetry."""
        if "opentelemetry.trace" not in sys.modules:
            return self.middleware
        from mainspring.worker.tracing import within_span

        return [within_span, *self.middleware]

    @asynccontextmanager
    async def opened(
        self, only: Iterable[Resource[Any]] | None = None, *, with_hooks: bool = True
    ) -> AsyncIterator[Surroundings]:
        """Open all resources, or only some and what they need."""
        wanted = self.resources if only is None else _with_their_needs(only)
        async with AsyncExitStack() as ending:
            if with_hooks:
                for hook in self.start_hooks:
                    await _call(hook)
                for hook in self.stop_hooks:
                    ending.push_async_callback(_call_at_the_end, hook)
            values: dict[Resource[Any], Any] = {}
            for resource in wanted:
                values[resource] = await ending.enter_async_context(resource.opened(values))
            yield Surroundings(values, self._all_middleware())

    async def around_one(
        self,
        needs: Iterable[Resource[Any]],
        call: Callable[[Surroundings], Awaitable[Any]],
        *,
        with_hooks: bool = True,
    ) -> Any:
        """For a process that makes one attempt: open, call, close. Resources do not learn what the attempt raised.

        Nor does the attempt learn what goes wrong while they are closed: it is over, and what came of it stands.
        """
        result = failure = None
        has_been_called = False
        try:
            async with self.opened(needs, with_hooks=with_hooks) as surroundings:
                has_been_called = True
                try:
                    result = await call(surroundings)
                except BaseException as error:
                    failure = error
        except Exception:
            if not has_been_called:
                raise
            log.exception("what surrounds handlers was not closed properly")
        if failure is not None:
            raise failure
        return result


def _with_their_needs(resources: Iterable[Resource[Any]]) -> list[Resource[Any]]:
    """Each after those it needs. There are no circles: a resource is defined before others can need it."""
    found: dict[Resource[Any], None] = {}
    for resource in resources:
        found |= dict.fromkeys([*_with_their_needs(resource.needs.values()), resource])
    return list(found)


async def _call(hook: Hook) -> None:
    answer = hook()
    if inspect.isawaitable(answer):
        await answer


async def _call_at_the_end(hook: Hook) -> None:
    """One that fails does not keep the others from having their turn."""
    try:
        await _call(hook)
    except Exception:
        log.exception("a shutdown hook failed", hook=getattr(hook, "__name__", str(hook)))
