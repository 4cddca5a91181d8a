"""Changes of schedules on a caller's connection that blocks: in the caller's thread, which may be all it works in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from mainspring.app.binding import Blocking
from mainspring.control.schedule_transactions import BlockingConnection
from mainspring.store.callers_session import run_here

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mainspring.app.binding import Opener, Verb
    from mainspring.wiring import Services

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def change_here(
    opener: Opener, connection: object, change: Callable[[Services, BlockingConnection], Coroutine[Any, Any, T]]
) -> T:
    """In this thread, which waits for whatever the background loop has to do in between."""
    services = opener.blocking(opener.services())
    return run_here(change(services, BlockingConnection(connection=connection, wait_for=opener.blocking)))


class BlockingChange(Blocking[P, R]):
    """The twin of a service's method that takes a `connection`."""

    def __init__(self, twin: Verb[P, R]) -> None:
        super().__init__(twin)
        self._service, self._method = twin.service, twin.method

    def perform(self, instance: Any, twin: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any) -> R:
        connection = kwargs.pop("connection", None)
        if connection is None:
            return super().perform(instance, twin, *args, **kwargs)

        def change(services: Services, here: BlockingConnection) -> Coroutine[Any, Any, R]:
            service, leading = services.of(self._service), instance.leading
            changing: Coroutine[Any, Any, R] = self._method(service, *leading, *args, connection=here, **kwargs)
            return changing

        return change_here(instance.opener, connection, change)


blocking_change = BlockingChange
