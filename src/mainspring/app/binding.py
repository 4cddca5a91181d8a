"""How an application speaks to the services of `control/`: each verb is the service's own, bound to who asks.

`find = verb(Runs, Runs.find)` in a class makes `Runs.find` a method of it. The service is opened when the method is
called, and the actor (of a handle, its run's id too) is filled in; signature and docstring stay those of the service.
`find_sync = blocking(find)` is the same method for code that is not async.
"""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from contextlib import aclosing
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from mainspring.model.event_loop import refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from uuid import UUID

    from mainspring.model.actor import Actor
    from mainspring.wiring import Services

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
B = TypeVar("B", bound="HasOpener")


class Opener(Protocol):
    """What an application offers to whatever is bound to it."""

    async def services(self) -> Services: ...

    def blocking(self, work: Coroutine[Any, Any, T]) -> T: ...


class HasOpener(Protocol):
    """An application, or what belongs to one."""

    @property
    def opener(self) -> Opener: ...


class Bound(Protocol):
    """What has bound verbs: a collection such as `app.runs`, or a handle."""

    called: str  # what people call it, for messages

    @property
    def opener(self) -> Opener: ...

    @property
    def leading(self) -> tuple[Any, ...]:
        """The arguments that are filled in: the actor, and of a handle its run's id."""


class _Verb(ABC):
    """A method of a service, as a method of something else."""

    def __init__(self, service: type[Any], method: Callable[..., Any], leading: int) -> None:
        self.service = service
        self.method = method
        self.__doc__ = method.__doc__
        whole = inspect.signature(method)
        own = list(whole.parameters.values())
        self.__signature__ = whole.replace(parameters=[own[0], *own[1 + leading :]])
        self.function = _dressed(self._function(), self.__signature__, method.__name__, method.__doc__)

    @abstractmethod
    def _function(self) -> Callable[..., Any]:
        """What is called on the instance."""


class Verb(_Verb, Generic[P, R]):
    """A service's method that is awaited."""

    def _function(self) -> Callable[..., Any]:
        async def call(instance: Bound, /, *args: Any, **kwargs: Any) -> Any:
            service = (await instance.opener.services()).of(self.service)
            return await self.method(service, *instance.leading, *args, **kwargs)

        return call

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self.function, instance)

    def __call__(self, instance: Any, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        answer: Coroutine[Any, Any, R] = self.function(instance, *args, **kwargs)
        return answer


class Stream(_Verb, Generic[P, T]):
    """A service's method that is iterated over with `async for`."""

    def _function(self) -> Callable[..., Any]:
        async def call(instance: Bound, /, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            service = (await instance.opener.services()).of(self.service)
            async with aclosing(self.method(service, *instance.leading, *args, **kwargs)) as steps:
                async for each in steps:
                    yield each

        return call

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self.function, instance)

    def __call__(self, instance: Any, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        answer: AsyncIterator[T] = self.function(instance, *args, **kwargs)
        return answer


def _dressed(function: Any, signature: inspect.Signature, name: str, doc: str | None) -> Callable[..., Any]:
    """What `help` shows is what the service says."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    function.__signature__ = signature
    return function  # type: ignore[no-any-return]


def verb(service: type[S], method: Callable[Concatenate[S, Actor, P], Coroutine[Any, Any, R]]) -> Verb[P, R]:
    """A method for who asks."""
    return Verb(service, method, leading=1)


def run_verb(
    service: type[S], method: Callable[Concatenate[S, Actor, UUID | str, P], Coroutine[Any, Any, R]]
) -> Verb[P, R]:
    """A method for who asks, about the run of a handle."""
    return Verb(service, method, leading=2)


def stream(service: type[S], method: Callable[Concatenate[S, Actor, P], AsyncIterator[T]]) -> Stream[P, T]:
    return Stream(service, method, leading=1)


def run_stream(
    service: type[S], method: Callable[Concatenate[S, Actor, UUID | str, P], AsyncIterator[T]]
) -> Stream[P, T]:
    return Stream(service, method, leading=2)


# ── for code that is not async ──────────────────────────────────────────────────────────────────────────────────


class Blocking(Generic[P, R]):
    """A method that runs its async twin in the application's background loop, and waits for it.

    The twin is found by its name, so a subclass that has its own has its own blocking one, too.
    """

    def __init__(self, twin: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> None:
        self.twin = twin

    def __set_name__(self, owner: type, name: str) -> None:
        def call(instance: Bound, /, *args: Any, **kwargs: Any) -> Any:
            _refuse(instance, name, "await ")
            return self.perform(instance, getattr(instance, _twin_of(name)), *args, **kwargs)

        self.function = _dressed(call, inspect.signature(self.twin), name, _of_twin(name))

    def perform(self, instance: Bound, twin: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any) -> R:
        return instance.opener.blocking(twin(*args, **kwargs))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self.function, instance)


class BlockingStream(Generic[P, T]):
    """The same for `async for`: a plain iterator."""

    def __init__(self, twin: Callable[Concatenate[Any, P], AsyncIterator[T]]) -> None:
        self.twin = twin

    def __set_name__(self, owner: type, name: str) -> None:
        def call(instance: Bound, /, *args: Any, **kwargs: Any) -> Iterator[Any]:
            _refuse(instance, name, "async for … in ")
            return _stepped(instance.opener, getattr(instance, _twin_of(name))(*args, **kwargs))

        self.function = _dressed(call, inspect.signature(self.twin), name, _of_twin(name))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Any, owner: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else MethodType(self.function, instance)


def _twin_of(name: str) -> str:
    return name.removesuffix("_sync")


def _of_twin(name: str) -> str:
    return f"`{_twin_of(name)}` for code that is not async."


blocking = Blocking
blocking_stream = BlockingStream


def blocking_call(
    name: str, twin: Callable[Concatenate[B, P], Coroutine[Any, Any, R]]
) -> Callable[Concatenate[B, P], R]:
    """The same for a function whose first argument is an application, or bound to one."""

    def call(bound: B, /, *args: P.args, **kwargs: P.kwargs) -> R:
        refuse_in_event_loop(name, f"await {_twin_of(name)}(…)")
        answer: R = bound.opener.blocking(twin(bound, *args, **kwargs))
        return answer

    call.__module__ = twin.__module__
    return _dressed(call, inspect.signature(twin), name, _of_twin(name))


def _stepped(opener: Opener, steps: AsyncIterator[T]) -> Iterator[T]:
    """One step of the background loop at a time; whoever stops early closes it."""
    over: Any = object()
    try:
        while (step := opener.blocking(_next(steps, over))) is not over:
            yield step
    finally:
        if not sys.is_finalizing():  # else the program has ended, and no thread runs that could close anything
            opener.blocking(_closed(steps))


async def _next(steps: AsyncIterator[T], over: T) -> T:
    return await anext(steps, over)


async def _closed(steps: Any) -> None:
    await steps.aclose()


def _refuse(instance: Bound, name: str, keyword: str) -> None:
    refuse_in_event_loop(name, f"{keyword}{instance.called}.{_twin_of(name)}(…)")
