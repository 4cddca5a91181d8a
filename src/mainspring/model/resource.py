"""Resources: what a process opens once and handlers are given, by a default that stands for it.

@app.resource
async def database() -> AsyncIterator[Pool]:
    async with create_pool(…) as pool:
        yield pool

@app.job
async def import_rows(file: str, *, pool: Pool = database.injected) -> None: …
"""

from __future__ import annotations

import inspect
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mainspring.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

T = TypeVar("T")


class Injected:
    """The default of a parameter that is given a resource. Nothing that a run's arguments could be."""

    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource

    def __repr__(self) -> str:
        return f"<{self.resource.name}, injected>"


class Resource(Generic[T]):
    """Something that is opened, used for as long as its process lives, and closed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__name__", "resource")
        self._manager = _manager_of(function)
        self.needs = injected_into(self.name, inspect.signature(function))
        _refuse_other_parameters(self.name, function, self.needs)
        self._stand_ins: list[T] = []

    @property
    def injected(self) -> T:
        """The default for a keyword-only parameter of a handler, or of another resource."""
        return cast("T", Injected(self))

    @asynccontextmanager
    async def opened(self, values: Mapping[Resource[Any], Any]) -> AsyncIterator[T]:
        """Open it, with the values of the resources it needs."""
        if self._stand_ins:
            yield self._stand_ins[-1]
            return
        manager = self._manager(**{name: values[resource] for name, resource in self.needs.items()})
        if isinstance(manager, AbstractAsyncContextManager):
            async with manager as value:
                yield value
        elif isinstance(manager, AbstractContextManager):
            with manager as value:
                yield value
        else:
            raise InvalidInput(
                f"The resource {self.name} is made by a function that returns a {type(manager).__name__}.",
                code="invalid-resource",
                hint="Yield it (an async or plain generator), or return a context manager.",
                resource=self.name,
            )

    @contextmanager
    def replaced_by(self, value: T) -> Iterator[None]:
        """For tests: within this block, whoever opens this resource gets this value."""
        self._stand_ins.append(value)
        try:
            yield
        finally:
            self._stand_ins.pop()


def _manager_of(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function):
        return asynccontextmanager(function)
    if inspect.isgeneratorfunction(function):
        return contextmanager(function)
    return function


def injected_into(owner: str, signature: inspect.Signature) -> dict[str, Resource[Any]]:
    """Which parameters are given resources. Only by keyword: they have no place among a run's arguments."""
    found = {}
    for name, parameter in signature.parameters.items():
        if isinstance(parameter.default, Injected):
            if parameter.kind is not parameter.KEYWORD_ONLY:
                raise InvalidInput(
                    f"{owner}: {name!r} is given a resource and must be keyword-only.",
                    code="invalid-handler",
                    hint=f"Put it after a star: def {owner}(…, *, {name}=…).",
                    field=name,
                )
            found[name] = parameter.default.resource
    return found


def _refuse_other_parameters(name: str, function: Callable[..., Any], needs: Mapping[str, Resource[Any]]) -> None:
    others = [each for each in inspect.signature(function).parameters if each not in needs]
    if others:
        raise InvalidInput(
            f"The resource {name} takes {others[0]!r}, and nobody can give it that.",
            code="invalid-resource",
            hint="A resource takes other resources only: def f(*, other=other_resource.injected).",
            resource=name,
            field=others[0],
        )
