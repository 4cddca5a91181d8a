"""Backlog caps: what they are and who set them. How runs are counted under them: `store/backlog.py`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.backlog import Backlog, CapRule
from mainspring.model.concurrency import LimitScope
from mainspring.store import declaring, notify
from mainspring.store.declaring import revision_locked
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.store.connection import Connection, Record
    from mainspring.store.declaring import Subject
    from mainspring.store.jobs import JobRef

COUNTED = 10_000  # entries of each cap, in each lane


async def listed(connection: Connection, *, tenant_id: int) -> list[Record]:
    return await load("backlog/list").fetch(connection, tenant=tenant_id)


async def in_force(connection: Connection, *, tenant_id: int | None) -> dict[int, list[CapRule]]:
    """All caps, as those need them who submit: by tenant, of one or of all."""
    found: defaultdict[int, list[CapRule]] = defaultdict(list)
    for row in await load("backlog/book").fetch(connection, tenant=tenant_id):
        found[row["tenant_id"]].append(CapRule(row["id"], LimitScope(row["scope"]), row["name"], row["key"]))
    return found


async def waiting(connection: Connection, lane: int, cap_id: int) -> list[Record]:
    """How many runs of one lane wait at each gate of a cap: of so many entries as are looked at."""
    number = str(cap_id)  # gates begin with it: 7, 7:acme
    alone = load("backlog/waiting").fetch(connection, lane=lane, first=number, last=f"{number}!", bound=COUNTED)
    by_value = load("backlog/waiting").fetch(
        connection, lane=lane, first=f"{number}:", last=f"{number};", bound=COUNTED
    )
    return [*await alone, *await by_value]


async def put(
    connection: Connection,
    subject: Subject,
    cap: Backlog,
    *,
    declared: Backlog | None,
    tenant_id: int,
    actor: str,
    reason: str,
) -> None:
    """Set a cap, inside a transaction."""
    revision = await revision_locked(connection)
    await load("backlog/put").execute(
        connection,
        id=revision,
        tenant=tenant_id,
        scope=subject.scope.value,
        name=subject.name,
        key=subject.key,
        most=cap.most,
        when_full=cap.when_full.value,
        declared=None if declared is None else msgspec.json.encode(declared).decode(),
        actor=actor,
        reason=reason,
        subject=str(subject),
        detail=msgspec.json.encode({**msgspec.to_builtins(cap), "reason": reason}).decode(),
    )
    notify.send(connection, [notify.limits()])


async def remove(connection: Connection, subject: Subject, *, tenant_id: int, actor: str, reason: str) -> bool:
    """Answers whether there was one."""
    await revision_locked(connection)
    found = await load("backlog/remove").fetchval(
        connection,
        tenant=tenant_id,
        scope=subject.scope.value,
        name=subject.name,
        key=subject.key,
        actor=actor,
        subject=str(subject),
        detail=msgspec.json.encode({"reason": reason}).decode(),
    )
    notify.send(connection, [notify.limits()])
    return found is not None


def declared_cap(text: str | None) -> Backlog | None:
    return None if text is None else msgspec.json.decode(text, type=Backlog)


KIND = declaring.Kind(listed, declared_cap, put, remove)


async def declare(
    connection: Connection, job: str, reference: JobRef, caps: Sequence[Backlog], *, tenant_id: int, actor: str
) -> None:
    """Let what a job declares take effect: see there."""
    await declaring.declare(connection, KIND, job, reference, caps, tenant_id=tenant_id, actor=actor)
