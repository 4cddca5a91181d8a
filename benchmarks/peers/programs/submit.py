"""A process that submits jobs of one peer: `python -m benchmarks.peers.programs.submit MODULE COUNT WARM_UP`.

It says when it is warm, begins at the first line on standard input and prints a report, as `benchmarks.producer` does.
A peer's `submit(count)` may be a plain function or a coroutine function; it returns when all are accepted.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import sys
import time
from typing import Any


async def report_of(submit: Any, count: int, warm_up: int) -> dict[str, float]:
    await finished(submit(warm_up))
    print("warm", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    await finished(submit(count))
    return {"submitted": count + warm_up, "timed": count, "began": began, "ended": time.monotonic()}


async def finished(submission: Any) -> None:
    if inspect.isawaitable(submission):
        await submission


def main() -> None:
    module, count, warm_up = sys.argv[1:]
    jobs = importlib.import_module(f"benchmarks.peers.programs.{module}")
    work = report_of(jobs.submit, int(count), int(warm_up))
    runner = getattr(jobs, "run", asyncio.run)  # asyncio's, or the faster one that the peer's own programs would use
    print(json.dumps(runner(work)), flush=True)


if __name__ == "__main__":
    main()
