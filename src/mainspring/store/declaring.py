"""Limits and backlog caps alike: for whom one is, and how what the code declares takes effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from mainspring.model.concurrency import NO_KEY, LimitScope
from mainspring.store import jobs
from mainspring.store.connection import transaction
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mainspring.store.connection import Connection, Record
    from mainspring.store.jobs import JobRef


class Subject(NamedTuple):
    """Which limit or cap: whose runs are counted together, and by what they are told apart."""

    scope: LimitScope
    name: str
    key: str = NO_KEY

    def __str__(self) -> str:
        of = f"{self.scope} {self.name}".strip()
        return f"{of} by {self.key}" if self.key else of


class Declared(Protocol):
    """What a job declares: by key."""

    @property
    def key(self) -> str | None: ...


D = TypeVar("D", bound=Declared)
D_put = TypeVar("D_put", bound=Declared, contravariant=True)


class Putting(Protocol[D_put]):
    def __call__(
        self,
        connection: Connection,
        subject: Subject,
        given: D_put,
        /,
        *,
        declared: D_put | None,
        tenant_id: int,
        actor: str,
        reason: str,
    ) -> Awaitable[None]: ...


class Removing(Protocol):
    def __call__(
        self, connection: Connection, subject: Subject, /, *, tenant_id: int, actor: str, reason: str
    ) -> Awaitable[bool]: ...


class Listing(Protocol):
    def __call__(self, connection: Connection, /, *, tenant_id: int) -> Awaitable[list[Record]]: ...


class Kind(NamedTuple, Generic[D]):
    """How one kind of them is read and written."""

    listed: Listing
    loaded: Callable[[str | None], D | None]
    put: Putting[D]
    remove: Removing


async def revision_locked(connection: Connection, count: int = 1) -> int:
    """Whoever writes one does so alone until COMMIT; answers with the last of so many numbers that none ever had."""
    return int(await load("limits/lock").fetchval(connection, count=count))


async def declare(
    connection: Connection,
    kind: Kind[D],
    job: str,
    reference: JobRef,
    wanted: Sequence[D],
    *,
    tenant_id: int,
    actor: str,
) -> None:
    """Let what a job declares take effect, where the code says something else than it did before.

    What somebody has set since stays, and an older version of the code changes nothing: so an old process that starts
    again in a rolling deploy brings nothing back.
    """
    if not await _differences(connection, kind, job, wanted, tenant_id):
        return
    if await jobs.is_outdated(connection, job, reference, tenant_id=tenant_id):
        return
    async with transaction(connection):
        await revision_locked(connection)  # somebody may do the same at this moment
        for key, given in (await _differences(connection, kind, job, wanted, tenant_id)).items():
            subject = Subject(LimitScope.JOB, job, key)
            if given is None:
                await kind.remove(connection, subject, tenant_id=tenant_id, actor=actor, reason="no longer declared")
            else:
                await kind.put(
                    connection, subject, given, declared=given, tenant_id=tenant_id, actor=actor, reason="declared"
                )


async def _differences(
    connection: Connection, kind: Kind[D], job: str, wanted: Sequence[D], tenant_id: int
) -> dict[str, D | None]:
    """By key, what the code declares otherwise than it did; None: no more."""
    rows = await kind.listed(connection, tenant_id=tenant_id)
    before = {
        row["key"]: row["declared"]
        for row in rows
        if row["scope"] == LimitScope.JOB and row["name"] == job and row["declared"] is not None
    }
    now = {given.key or NO_KEY: given for given in wanted}
    gone: dict[str, D | None] = dict.fromkeys(key for key in before if key not in now)
    return gone | {key: given for key, given in now.items() if kind.loaded(before.get(key)) != given}
