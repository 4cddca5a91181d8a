"""When a worker and the database are brought in step again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tests.waiting import PATIENCE, until

from mainspring.model.concurrency import TenantRules
from mainspring.worker.sync import SyncLoop

from .hands import HandClock


class Listener:
    """One that listens."""

    def __init__(self) -> None:
        self.wants_sync = asyncio.Event()
        self.has_new_line = False

    def is_on(self, connection: Any) -> bool:
        return True


async def test_what_is_notified_during_a_round_has_another_one_at_once() -> None:
    rounds: list[int] = []
    listener = Listener()

    async def nothing(*_: Any) -> None: ...

    async def write(connection: Any) -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            listener.wants_sync.set()  # leases were looked at already

    parts: Any = {"link": SimpleNamespace(get=nothing), "lines": SimpleNamespace(learn=lambda lines: None)}
    sync = SyncLoop(
        **parts,
        worker=cast("Any", SimpleNamespace(clock=HandClock())),
        every=2 * PATIENCE,
        listener=cast("Any", listener),
        reconciler=cast("Any", SimpleNamespace(reconcile=nothing)),
        status=cast("Any", SimpleNamespace(write=write)),
        gating=cast("Any", SimpleNamespace(refresh=nothing, rules=TenantRules())),
    )
    sync._rounds_until_lines = 10
    running = asyncio.create_task(sync.run())

    await until(lambda: len(rounds) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
