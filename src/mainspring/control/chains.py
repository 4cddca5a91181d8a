"""Chains between jobs as people handle them. What they are is said in code: `@app.job(after="load")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.errors import ChainNotFound, shortened
from mainspring.model.job import checked_reason
from mainspring.store import chains as store
from mainspring.store.connection import transaction, uncancelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.model.actor import Actor
    from mainspring.model.chain import Chain
    from mainspring.store.database import Database


class Chains:
    """Shows chains, pauses and removes them."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def list(self, actor: Actor) -> Sequence[Chain]:
        """Every chain: after which job's runs, and on which end, a run of which other job is submitted."""
        async with self._database.acquire() as connection:
            return await store.listed(connection, tenant_id=actor.tenant)

    async def pause(self, actor: Actor, upstream: str, downstream: str, *, reason: str = "") -> Chain:
        """Let runs of `downstream` not follow those of `upstream` that end from now on. Deploys do not change that."""
        return await self._pause(actor, upstream, downstream, is_paused=True, reason=checked_reason(reason))

    async def resume(self, actor: Actor, upstream: str, downstream: str, *, reason: str = "") -> Chain:
        """Let them follow again; what ended meanwhile is followed by nothing."""
        return await self._pause(actor, upstream, downstream, is_paused=False, reason=checked_reason(reason))

    async def _pause(self, actor: Actor, upstream: str, downstream: str, *, is_paused: bool, reason: str) -> Chain:
        async def act() -> None:
            async with self._database.acquire() as connection, transaction(connection):
                is_there = await store.pause(
                    connection,
                    upstream,
                    downstream,
                    is_paused=is_paused,
                    tenant_id=actor.tenant,
                    actor=actor.name,
                    reason=reason,
                )
            if not is_there:
                raise _not_found(upstream, downstream)

        await uncancelled(act())
        return await self._find(actor, upstream, downstream)

    async def remove(self, actor: Actor, upstream: str, downstream: str, *, reason: str = "") -> None:
        """Remove a chain that no code declares any more. If some does, it comes back with its next start: pause it."""
        reason = checked_reason(reason)

        async def act() -> None:
            async with self._database.acquire() as connection, transaction(connection):
                is_there = await store.remove(
                    connection, upstream, downstream, tenant_id=actor.tenant, actor=actor.name, reason=reason
                )
            if not is_there:
                raise _not_found(upstream, downstream)

        await uncancelled(act())

    async def _find(self, actor: Actor, upstream: str, downstream: str) -> Chain:
        for each in await self.list(actor):
            if (each.upstream, each.downstream) == (upstream, downstream):
                return each
        raise _not_found(upstream, downstream)


def _not_found(upstream: str, downstream: str) -> ChainNotFound:
    return ChainNotFound(
        f"Runs of {shortened(downstream)} do not follow those of {shortened(upstream)}.",
        hint="See which chains there are: mainspring chain list",
        field="upstream",
        value=upstream,
    )
