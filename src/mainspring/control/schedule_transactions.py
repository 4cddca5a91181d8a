"""Changes of schedules inside a caller's own transaction: they happen if and only if the caller commits.

Jobs and queues are looked up, or registered, over a connection of ours before; then all statements go over the
caller's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from mainspring.store import submissions
from mainspring.store.callers_session import callers_session, run_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mainspring.control.definitions import Definitions
    from mainspring.control.schedule_acts import ScheduleActs
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedules import Schedules
    from mainspring.model.actor import Actor
    from mainspring.model.scheduling import ScheduleSummary
    from mainspring.store.callers import CallersConnection
    from mainspring.store.connection import Connection

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedChange(Generic[T]):
    """A change that is ready to be made on a caller's connection."""

    known: str  # what it takes for granted of the database
    act: Callable[[Connection], Awaitable[T]]

    async def make(self, connection: CallersConnection) -> T:
        return await self._make(connection, is_blocking=False)

    def make_sync(self, connection: CallersConnection) -> T:
        """In the caller's thread: its connection may belong to it."""
        return run_here(self._make(connection, is_blocking=True))

    async def _make(self, connection: CallersConnection, *, is_blocking: bool) -> T:
        async with callers_session(connection, is_blocking=is_blocking) as session:
            objection = await submissions.objection_to(session, self.known)
            if objection is not None:
                submissions.raise_objection(objection)
            return await self.act(session)


class ScheduleTransactions:
    """Prepares changes of schedules for a caller's own transaction."""

    def __init__(self, *, schedules: Schedules, acts: ScheduleActs, definitions: Definitions) -> None:
        self._schedules = schedules
        self._acts = acts
        self.definitions = definitions

    async def create(self, actor: Actor, request: ScheduleRequest) -> PreparedChange[ScheduleSummary]:
        content = await self._schedules.content(actor, request)

        async def act(connection: Connection) -> ScheduleSummary:
            return await self._acts.create(connection, actor, request, content)

        return PreparedChange(known=self.definitions.known_of_jobs({content.job: request.job}), act=act)

    async def put(
        self, actor: Actor, request: ScheduleRequest, *, expected_version: int | None = None
    ) -> PreparedChange[ScheduleSummary]:
        content = await self._schedules.content(actor, request)

        async def act(connection: Connection) -> ScheduleSummary:
            return await self._acts.put(connection, actor, request, content, expected_version)

        return PreparedChange(known=self.definitions.known_of_jobs({content.job: request.job}), act=act)

    async def delete(self, actor: Actor, name: str, *, expected_version: int | None = None) -> PreparedChange[None]:
        async def act(connection: Connection) -> None:
            await self._acts.delete(connection, actor, name, expected_version)

        return PreparedChange(known=self.definitions.known_of_jobs({}), act=act)
