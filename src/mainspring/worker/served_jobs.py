"""Which jobs, of all tenants, a worker has handlers for.

A job has a number per tenant, and a handler goes by the job's name. A worker registers its jobs for its application's
own tenant; those of others are met when a claim brings the first of their runs, and looked up once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from mainspring.store import jobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.store.connection import Connection
    from mainspring.worker.registry import Handler


class ServedJobs:
    """Handlers by the numbers of their jobs. They come and never go."""

    def __init__(self, handlers: Iterable[Handler]) -> None:
        self._by_name = {handler.name: handler for handler in handlers}
        self.names = frozenset(self._by_name)
        self.need_threads = any(handler.needs_thread for handler in self._by_name.values())
        self.have_chunks = any(handler.chunk is not None for handler in self._by_name.values())
        self.handlers: dict[int, Handler] = {}
        self._of_tenants: defaultdict[int, list[int]] = defaultdict(list)
        self._met: set[int] = set()  # also those that nobody here can execute
        self.to_register: asyncio.Queue[tuple[int, Handler]] = asyncio.Queue()  # by tenant: see `tenant_jobs.py`
        self._in_threads: defaultdict[int, list[int]] = defaultdict(list)  # by tenant
        self._chunks_in_threads: defaultdict[int, list[int]] = defaultdict(list)

    def __len__(self) -> int:
        return len(self.handlers)

    def add(self, number: int, tenant_id: int, name: str) -> None:
        """A tenant's job of this name has this number."""
        handler = self._by_name.get(name)
        self._met.add(number)
        if handler is None or number in self.handlers:
            return
        self.handlers[number] = handler
        self._of_tenants[tenant_id].append(number)
        if handler.needs_thread:
            (self._in_threads if handler.chunk is None else self._chunks_in_threads)[tenant_id].append(number)

    def of_tenant(self, tenant_id: int) -> Sequence[int]:
        """The jobs of a tenant that were met here, by number."""
        return self._of_tenants.get(tenant_id, ())

    async def meet(self, connection: Connection, numbers: set[int]) -> bool:
        """Look up those of these jobs that are new here; answers whether one of them needs a thread."""
        if numbers <= self._met:
            return False
        rows = await jobs.find_many(connection, numbers - self._met)
        for row in rows:
            self.add(row["id"], row["tenant_id"], row["name"])
        self._met |= numbers
        found = [(row["tenant_id"], self.handlers[row["id"]]) for row in rows if row["id"] in self.handlers]
        for each in found:
            self.to_register.put_nowait(each)
        return any(handler.needs_thread for _, handler in found)

    def in_threads(self, tenant_id: int, *, with_chunks: bool) -> Sequence[int]:
        """The jobs of a tenant that need a thread; those that are called for many runs at once, too, if told."""
        alone = self._in_threads.get(tenant_id, [])
        return [*alone, *self._chunks_in_threads.get(tenant_id, [])] if with_chunks else alone
