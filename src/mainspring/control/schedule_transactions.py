"""Where schedules are changed: in a transaction of ours, or in a caller's own, and then if and only if that commits.

In a caller's transaction all statements that concern schedules go over the caller's connection. What has to be known or
registered before (jobs, queues) goes over one of ours. A connection that blocks is used in its caller's thread, which
waits for whatever our event loop has to do in between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from mainspring.store import submissions
from mainspring.store.callers import callers_connection
from mainspring.store.callers_session import callers_session
from mainspring.store.connection import transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping
    from uuid import UUID

    from mainspring.control.definitions import Definitions
    from mainspring.control.submissions import Submissions
    from mainspring.model.actor import Actor
    from mainspring.model.options import SubmitOptions
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

T = TypeVar("T")
NO_JOBS: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingConnection:
    """A caller's connection that blocks, and how its thread waits for what our event loop does."""

    connection: object
    wait_for: Callable[[Coroutine[Any, Any, Any]], Any]


class ScheduleTransaction(ABC):
    """The transaction that an act on schedules is part of."""

    @abstractmethod
    async def over_own_connection(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for what goes over a connection of ours, and not over the caller's."""

    @abstractmethod
    async def act(self, act: Callable[[Connection], Awaitable[T]], *, jobs: Mapping[int, str] = NO_JOBS) -> T:
        """Act as a whole or not at all; the names of jobs stand for the numbers that the act uses."""

    @abstractmethod
    async def look(self, look: Callable[[Connection], Awaitable[T]]) -> T:
        """Read what the transaction sees."""

    @abstractmethod
    async def again_if_replaced(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Make an attempt; and another if the numbers of jobs turn out to be those of a database that was replaced."""

    @abstractmethod
    async def submit(
        self, submissions: Submissions, actor: Actor, job: str, payload: bytes, options: SubmitOptions
    ) -> UUID:
        """Accept one run."""


class OwnTransaction(ScheduleTransaction):
    """Begins and commits with the act."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def over_own_connection(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def act(self, act: Callable[[Connection], Awaitable[T]], *, jobs: Mapping[int, str] = NO_JOBS) -> T:
        async with self._database.acquire() as connection, transaction(connection):
            return await act(connection)

    async def look(self, look: Callable[[Connection], Awaitable[T]]) -> T:
        async with self._database.acquire() as connection:
            return await look(connection)

    async def again_if_replaced(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await attempt()

    async def submit(
        self, submissions: Submissions, actor: Actor, job: str, payload: bytes, options: SubmitOptions
    ) -> UUID:
        return (await submissions.submit_payload(actor, job, payload, options)).id


class CallersTransaction(ScheduleTransaction):
    """Was begun by a caller, and ends when and how the caller likes."""

    def __init__(self, connection: object, definitions: Definitions) -> None:
        here = connection if isinstance(connection, BlockingConnection) else None
        self._connection = callers_connection(connection if here is None else here.connection)
        self._wait_for = None if here is None else here.wait_for
        self._definitions = definitions

    async def over_own_connection(self, work: Coroutine[Any, Any, T]) -> T:
        if self._wait_for is None:
            return await work
        answer: T = self._wait_for(work)
        return answer

    async def act(self, act: Callable[[Connection], Awaitable[T]], *, jobs: Mapping[int, str] = NO_JOBS) -> T:
        is_blocking = self._wait_for is not None
        async with callers_session(self._connection, is_blocking=is_blocking) as session:
            objection = await submissions.objection_to(session, self._definitions.known_of_jobs(dict(jobs)))
            if objection is not None:
                submissions.raise_objection(objection)
            return await act(session)

    async def look(self, look: Callable[[Connection], Awaitable[T]]) -> T:
        return await self.again_if_replaced(lambda: self.act(look))

    async def again_if_replaced(self, attempt: Callable[[], Awaitable[T]]) -> T:
        return await self._definitions.again_if_replaced(attempt, over_own_connection=self.over_own_connection)

    async def submit(
        self, submissions: Submissions, actor: Actor, job: str, payload: bytes, options: SubmitOptions
    ) -> UUID:
        async def attempt() -> UUID:
            prepared = await self.over_own_connection(submissions.prepare_payload(actor, job, payload, options))
            is_blocking, connection = self._wait_for is not None, self._connection
            async with callers_session(connection, is_blocking=is_blocking):  # what is refused leaves nothing behind
                accepted = prepared.send_sync(connection) if is_blocking else await prepared.send(connection)
            await self.over_own_connection(prepared.wake())
            return accepted.ids[0]

        return await self.again_if_replaced(attempt)


class ScheduleTransactions:
    """Says which transaction an act is part of: the caller's, if a connection is given."""

    def __init__(self, *, database: Database, definitions: Definitions) -> None:
        self._database = database
        self._definitions = definitions

    def on(self, connection: object | None) -> ScheduleTransaction:
        if connection is None:
            return OwnTransaction(self._database)
        return CallersTransaction(connection, self._definitions)
