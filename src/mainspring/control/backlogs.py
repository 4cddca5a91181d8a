"""Backlog caps as people handle them: look at them, set and remove them while everything works."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mainspring.control.rules import Rules
from mainspring.errors import BacklogCapNotFound
from mainspring.model.backlog import Backlog, BacklogStatus, BacklogValue, WhenFull
from mainspring.model.concurrency import LimitScope
from mainspring.store import backlog_caps as store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection, Record
    from mainspring.store.database import Database
    from mainspring.store.declaring import Subject
    from mainspring.store.limits import RuleBooks

VALUES_SHOWN = 100


class Backlogs:
    """Shows backlog caps, sets and removes them."""

    def __init__(self, *, database: Database, lanes: int, books: RuleBooks) -> None:
        self._database = database
        self._lanes = lanes
        self._books = books
        self._rules = Rules(database=database, kind=store.KIND, name="backlog cap", missing=_missing)

    async def list(self, actor: Actor) -> list[BacklogStatus]:
        """Every backlog cap: what it says, who set it, how many runs wait under it."""
        async with self._database.acquire() as connection:
            rows = await store.listed(connection, tenant_id=actor.tenant)
            return [(await self._counted(connection, row))[0] for row in rows]

    async def show(
        self, actor: Actor, *, job: str | None = None, queue: str | None = None, key: str | None = None
    ) -> tuple[BacklogStatus, Sequence[BacklogValue]]:
        """One backlog cap, with the hundred values of its key under which most runs wait.

        Without a job and a queue it is one of the whole tenant.
        """
        subject = self._rules.subject(job, queue, key)
        async with self._database.acquire() as connection:
            return await self._counted(connection, await self._rules.find(connection, actor, subject))

    async def set(
        self,
        actor: Actor,
        most: int,
        *,
        job: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        when_full: WhenFull | str = WhenFull.REFUSE,
        reason: str = "",
    ) -> BacklogStatus:
        """Let at most so many runs wait for their first start: of a job, of a queue, or of the whole tenant.

        In force within a second. What waits already stays, and is counted if it was accepted under this cap. With a key
        each of its values has a cap of its own. `when_full` is what happens to what comes too much.
        """
        cap = Backlog(most, key=key, when_full=when_full)
        await self._rules.set(actor, self._rules.subject(job, queue, key), cap, reason)
        self._books.forget(actor.tenant)  # here it is in force at once
        return (await self.show(actor, job=job, queue=queue, key=key))[0]

    async def remove(
        self,
        actor: Actor,
        *,
        job: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        reason: str = "",
    ) -> bool:
        """Remove a backlog cap. Answers whether it is gone for good: the code may declare it.

        Then it comes back with the next start of an application that does.
        """
        is_gone = await self._rules.remove(actor, self._rules.subject(job, queue, key), reason)
        self._books.forget(actor.tenant)
        return is_gone

    async def _counted(self, connection: Connection, row: Record) -> tuple[BacklogStatus, Sequence[BacklogValue]]:
        """As exact as the first so many entries of each lane are."""
        gates: defaultdict[str, list[Record]] = defaultdict(list)
        is_exact = True
        for lane in range(self._lanes):
            found = await store.waiting(connection, lane, row["id"])
            is_exact &= sum(each["entries"] for each in found) < store.COUNTED
            for each in found:
                if each["waiting"]:
                    gates[each["gate"]].append(each)
        values = sorted((_value(gate, found) for gate, found in gates.items()), key=lambda value: -value.waiting)
        return _status(row, sum(value.waiting for value in values), is_exact=is_exact), values[:VALUES_SHOWN]


def _value(gate: str, found: Sequence[Record]) -> BacklogValue:
    oldest = min(found, key=lambda each: int(each["first_place"]))
    waiting = sum(each["waiting"] for each in found)
    return BacklogValue(value=gate.partition(":")[2] or None, waiting=waiting, oldest=oldest["first_id"])


def _status(row: Record, waiting: int, *, is_exact: bool) -> BacklogStatus:
    declared = store.declared_cap(row["declared"])
    cap = Backlog(row["most"], key=row["key"] or None, when_full=row["when_full"])
    return BacklogStatus(
        scope=LimitScope(row["scope"]),
        name=row["name"],
        key=cap.key,
        most=cap.most,
        when_full=cap.when_full,
        waiting=waiting,
        counts_are_exact=is_exact,
        is_declared=declared is not None,
        is_as_declared=declared == cap,
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
        reason=row["reason"],
    )


def _missing(subject: Subject, *, hint: str) -> BacklogCapNotFound:
    return BacklogCapNotFound(f"There is no backlog cap for {subject}.", hint=hint, field="backlog", value=str(subject))
