"""A handle on a run: what `submit` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mainspring.model.event_loop import refuse_in_event_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from mainspring.app.mainspring import Mainspring
    from mainspring.control.watching import Sighting
    from mainspring.model.lifecycle import State
    from mainspring.model.report import LogLine
    from mainspring.model.run import Run

R = TypeVar("R")


class Handle(Generic[R]):
    """One run, by its id."""

    __slots__ = ("_app", "id")

    def __init__(self, app: Mainspring, run_id: UUID) -> None:
        self._app = app
        self.id = run_id

    async def result(self, timeout: float | None = None) -> R:
        """What the handler returned, once it has; raises RunFailed, RunCancelled, RunExpired or ResultTimeout."""
        value: Any = await self._app.result(self.id, timeout)
        return value  # type: ignore[no-any-return]  # JSON: the handler's annotation is the promise

    def result_sync(self, timeout: float | None = None) -> R:
        """`result` for code that is not async."""
        refuse_in_event_loop("result_sync", "await handle.result(…)")
        return self._app.blocking(self.result(timeout))

    async def find(self) -> Run:
        """The run as it is now, with its attempts."""
        return await self._app.find(self.id)

    async def logs(self, *, attempt: int | None = None) -> list[LogLine]:
        """What the run has logged so far, oldest first."""
        return await self._app.logs(self.id, attempt=attempt)

    def watch(self) -> AsyncIterator[Sighting]:
        """The run while it goes on: `async for sighting in handle.watch()`, until it has ended."""
        return self._app.watch(self.id)

    async def cancel(self, reason: str = "") -> State:
        """End the run if it waits; ask it to stop if it is running."""
        return await self._app.cancel(self.id, reason=reason)

    def __repr__(self) -> str:
        return f"<run {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)
