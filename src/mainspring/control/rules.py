"""What limits and backlog caps have in common: rules for a job, a queue or a whole tenant, found, set and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol

from mainspring.errors import InvalidInput
from mainspring.model.concurrency import NO_KEY, LimitScope
from mainspring.model.job import checked_reason
from mainspring.model.limit_key import limit_key
from mainspring.store import jobs
from mainspring.store.connection import transaction, uncancelled
from mainspring.store.declaring import D, Subject, revision_locked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.errors import NotFound
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.declaring import Kind


class Missing(Protocol):
    """Makes the error that says that there is no such rule."""

    def __call__(self, subject: Subject, /, *, hint: str) -> NotFound: ...


class Rules(Generic[D]):
    """Finds, sets and removes rules of one kind."""

    def __init__(self, *, database: Database, kind: Kind[D], name: str, missing: Missing) -> None:
        self._database = database
        self._kind = kind
        self._name = name
        self._missing = missing

    def subject(self, job: str | None, queue: str | None, key: str | None) -> Subject:
        """For whom a rule is; without a job and a queue for the whole tenant."""
        if job is not None and queue is not None:
            raise InvalidInput(
                f"A {self._name} is for a job or for a queue, not for both.",
                code="limit-of-two",
                hint=f"Set two {self._name}s: runs are under both.",
                field="queue",
            )
        if key is not None:
            limit_key(key)
        scope = LimitScope.JOB if job is not None else LimitScope.QUEUE if queue is not None else LimitScope.TENANT
        return Subject(scope, job or queue or "", key or NO_KEY)

    async def find(self, connection: Connection, actor: Actor, subject: Subject) -> Record:
        """The rule for a subject; refused if there is none, and first of all if its job or queue does not exist."""
        rows = await self._kind.listed(connection, tenant_id=actor.tenant)
        row = _of(subject, rows)
        if row is None:
            await _check_exists(connection, actor, subject)
            raise self._missing(subject, hint=self._known(rows))
        return row

    def _known(self, rows: Sequence[Record]) -> str:
        known = [str(Subject(LimitScope(row["scope"]), row["name"], row["key"])) for row in rows]
        return (
            f"There are {self._name}s for {'; '.join(known[:5])}." if known else f"There are no {self._name}s at all."
        )

    async def set(self, actor: Actor, subject: Subject, given: D, reason: str) -> None:
        """In force at its COMMIT. What the code says about it stays known, and is not said again."""
        await uncancelled(self._set(actor, subject, given, checked_reason(reason)))

    async def _set(self, actor: Actor, subject: Subject, given: D, reason: str) -> None:
        async with self._database.acquire() as connection:
            await _check_exists(connection, actor, subject)
            async with transaction(connection):
                await revision_locked(connection)  # the code may declare it at this moment
                row = _of(subject, await self._kind.listed(connection, tenant_id=actor.tenant))
                await self._kind.put(
                    connection,
                    subject,
                    given,
                    declared=None if row is None else self._kind.loaded(row["declared"]),
                    tenant_id=actor.tenant,
                    actor=actor.name,
                    reason=reason,
                )

    async def remove(self, actor: Actor, subject: Subject, reason: str) -> bool:
        """Answers whether it is gone for good: if the code declares it, it comes back with the next start."""
        return await uncancelled(self._remove(actor, subject, checked_reason(reason)))

    async def _remove(self, actor: Actor, subject: Subject, reason: str) -> bool:
        async with self._database.acquire() as connection, transaction(connection):
            await revision_locked(connection)
            row = await self.find(connection, actor, subject)
            await self._kind.remove(connection, subject, tenant_id=actor.tenant, actor=actor.name, reason=reason)
        return row["declared"] is None


def _of(subject: Subject, rows: Sequence[Record]) -> Record | None:
    wanted = (subject.scope, subject.name, subject.key)
    return next((row for row in rows if (row["scope"], row["name"], row["key"]) == wanted), None)


async def _check_exists(connection: Connection, actor: Actor, subject: Subject) -> None:
    """Refuse a rule for what does not exist: it is a slip more often than a plan."""
    if subject.scope is LimitScope.JOB:
        await jobs.find(connection, subject.name, tenant_id=actor.tenant)
    elif subject.scope is LimitScope.QUEUE:
        jobs.line_of(await jobs.lines_of(connection, tenant_id=actor.tenant), subject.name)
