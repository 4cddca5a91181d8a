"""Chains between jobs: which there are, and who said so. What comes of them: `store/triggering.py`."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import msgspec

from mainspring.errors import InvalidInput
from mainspring.model.chain import Chain, circular, cycle_through
from mainspring.model.dependency import Condition
from mainspring.store import jobs, notify
from mainspring.store.connection import transaction
from mainspring.store.declaring import revision_locked
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.model.chain import After
    from mainspring.store.connection import Connection
    from mainspring.store.jobs import JobRef

MAX_FOLLOWERS = 100  # of one job


async def listed(connection: Connection, *, tenant_id: int) -> list[Chain]:
    """In the order of their names."""
    rows = await load("chains/list").fetch(connection, tenant=tenant_id)
    return [
        Chain(
            upstream=row["upstream"],
            downstream=row["downstream"],
            on=Condition(row["condition"]),
            result=row["argument"],
            is_paused=row["is_paused"],
            changed_at=row["changed_at"],
            changed_by=row["changed_by"],
            reason=row["reason"],
        )
        for row in rows
    ]


async def upstreams(connection: Connection, *, tenant_id: int | None) -> dict[int, set[str]]:
    """The jobs after whose runs others are submitted: by tenant, of one or of all."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for row in await load("chains/upstreams").fetch(connection, tenant=tenant_id):
        found[row["tenant_id"]].add(row["upstream"])
    return found


async def declare(
    connection: Connection, job: str, reference: JobRef, after: Sequence[After], *, tenant_id: int, actor: str
) -> None:
    """Let what a job declares take effect, as limits do: an older version of the code changes nothing."""
    if not _differences(job, after, await listed(connection, tenant_id=tenant_id)):
        return
    newest, _ = await jobs.find(connection, job, tenant_id=tenant_id)
    if reference.version < newest.version:
        return
    async with transaction(connection):
        await revision_locked(connection)  # somebody may do the same at this moment
        present = await listed(connection, tenant_id=tenant_id)
        _refuse_circle(job, after, present)
        _refuse_too_many(job, after, present)
        for upstream, wanted in _differences(job, after, present).items():
            if wanted is None:
                await _remove(connection, upstream, job, tenant_id=tenant_id, actor=actor, reason="no longer declared")
            else:
                await _put(connection, job, wanted, tenant_id=tenant_id, actor=actor)
        notify.send(connection, [notify.limits()])


def _differences(job: str, after: Iterable[After], present: Iterable[Chain]) -> dict[str, After | None]:
    """By upstream job, what the code declares otherwise than it did; None: no more."""
    before = {each.upstream: (each.on, each.result) for each in present if each.downstream == job}
    now = {each.job: each for each in after}
    gone: dict[str, After | None] = dict.fromkeys(upstream for upstream in before if upstream not in now)
    return gone | {name: each for name, each in now.items() if before.get(name) != (each.on, each.result)}


def _refuse_circle(job: str, after: Iterable[After], present: Iterable[Chain]) -> None:
    follows: defaultdict[str, list[str]] = defaultdict(list)
    for each in present:
        if each.downstream != job:
            follows[each.upstream].append(each.downstream)
    for upstream in after:
        follows[upstream.job].append(job)
    cycle = cycle_through(job, follows)
    if cycle is not None:
        raise circular(cycle)


def _refuse_too_many(job: str, after: Iterable[After], present: Iterable[Chain]) -> None:
    """Whoever ends a run of a job that others follow has all of them submitted at once."""
    followers = Counter(each.upstream for each in present if each.downstream != job)
    for upstream in after:
        if followers[upstream.job] >= MAX_FOLLOWERS:
            raise InvalidInput(
                f"{MAX_FOLLOWERS} jobs follow {upstream.job} already; {job} cannot follow it, too.",
                code="too-many-followers",
                hint="Let it follow one of those, or submit it by itself.",
                field="after",
                value=upstream.job,
                rule=f"must be followed by at most {MAX_FOLLOWERS} jobs",
            )


async def _put(connection: Connection, job: str, after: After, *, tenant_id: int, actor: str) -> None:
    await load("chains/put").execute(
        connection,
        tenant=tenant_id,
        upstream=after.job,
        downstream=job,
        condition=after.on.value,
        argument=after.result,
        actor=actor,
        subject=_subject(after.job, job),
        detail=msgspec.json.encode(after).decode(),
    )


async def remove(
    connection: Connection, upstream: str, downstream: str, *, tenant_id: int, actor: str, reason: str
) -> bool:
    """Inside a transaction; answers whether there was one."""
    await revision_locked(connection)
    is_there = await _remove(connection, upstream, downstream, tenant_id=tenant_id, actor=actor, reason=reason)
    notify.send(connection, [notify.limits()])
    return is_there


async def _remove(
    connection: Connection, upstream: str, downstream: str, *, tenant_id: int, actor: str, reason: str
) -> bool:
    found = await load("chains/remove").fetchval(
        connection,
        tenant=tenant_id,
        upstream=upstream,
        downstream=downstream,
        actor=actor,
        subject=_subject(upstream, downstream),
        detail=msgspec.json.encode({"reason": reason}).decode(),
    )
    return found is not None


async def pause(
    connection: Connection,
    upstream: str,
    downstream: str,
    *,
    is_paused: bool,
    tenant_id: int,
    actor: str,
    reason: str,
) -> bool:
    """Pause a chain or let it go on; answers whether there is one."""
    found = await load("chains/pause").fetchval(
        connection,
        is_paused=is_paused,
        tenant=tenant_id,
        upstream=upstream,
        downstream=downstream,
        actor=actor,
        reason=reason,
        subject=_subject(upstream, downstream),
        detail=msgspec.json.encode({"reason": reason}).decode(),
    )
    return found is not None


def _subject(upstream: str, downstream: str) -> str:
    return f"{downstream} after {upstream}"
