"""A program with a worker inside, one of whose handlers goes on past its time and past the program's end."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import timedelta

from mainspring import Mainspring, RetryPolicy
from mainspring.errors import RunFailed

app = Mainspring()


@app.job(timeout=timedelta(seconds=0.1), retry=RetryPolicy(max_attempts=1))
def never_end() -> None:
    while True:
        time.sleep(0.01)


async def main() -> None:
    async with app.running(cancel_grace=0, grace=0):
        handle = await never_end.submit()
        try:
            await handle.result(60)
        except RunFailed:
            sys.stdout.write("abandoned\n")
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
