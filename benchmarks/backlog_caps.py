"""How fast runs are accepted under a backlog cap, against those without: in turns, in batches, by one producer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.harness import Numbers, fresh_database, say
from mainspring import Backlog, Mainspring

if TYPE_CHECKING:
    from mainspring.store.embedded import EmbeddedServer

BATCH, ROUNDS, CAP = 500, 40, 1_000_000


async def measured(server: EmbeddedServer) -> Numbers:
    app = Mainspring(await fresh_database(server, "capped"))

    @app.job
    async def free(number: int) -> None: ...

    @app.job(backlog=[Backlog(CAP), Backlog(CAP, key="number")])
    async def capped(number: int) -> None: ...

    spans = {"free": 0.0, "capped": 0.0}
    calls = [{"number": number % 10} for number in range(BATCH)]
    async with app:
        for turn in range(-2, ROUNDS):  # the first two to warm up
            for job in (free, capped):
                began = time.perf_counter()
                await job.submit_many(calls)
                if turn >= 0:
                    spans[job.name] += time.perf_counter() - began
    rates = {name: BATCH * ROUNDS / span for name, span in spans.items()}
    say(f"  {rates['capped']:,.0f} runs per second are accepted under two caps, {rates['free']:,.0f} without any")
    return {"capped_submit_per_s": rates["capped"], "uncapped_submit_per_s": rates["free"]}
