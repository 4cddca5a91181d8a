"""A process that submits in batches until a line arrives on standard input, then prints how many it submitted."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

import uvloop

from benchmarks.jobs import CALL, app, noop

BATCH = 500
MOST_WAITING = 20_000
LOOK_EVERY = 10  # batches


async def produce(seconds: float, told_to_stop: threading.Event) -> int:
    store = (await app.services()).store
    connection = await store.database.connect("producer")
    until, submitted, batches = time.monotonic() + seconds, 0, 0
    calls = [CALL] * BATCH
    while time.monotonic() < until and not told_to_stop.is_set():
        if batches % LOOK_EVERY == 0:
            look = f"select count(*) from (select from ready limit {MOST_WAITING}) as front"
            if await connection.fetchval(look) >= MOST_WAITING:
                await asyncio.sleep(0.02)
                continue
        await noop.submit_many(calls)
        submitted += BATCH
        batches += 1
    await connection.close()
    await app.close()
    return submitted


def main() -> None:
    told_to_stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), told_to_stop.set()), daemon=True).start()
    print(uvloop.run(produce(float(sys.argv[1]), told_to_stop)), flush=True)


if __name__ == "__main__":
    main()
