"""The application of the benchmark `threads`: the same computation in each way there is, and an urgent `async` run."""

from __future__ import annotations

import time

from mainspring import Mainspring

BURN_SECONDS = 0.095

app = Mainspring()


def _burn() -> None:
    """Python code that takes so much processor time, however long it has to wait for it."""
    until = time.thread_time() + BURN_SECONDS
    while time.thread_time() < until:
        sum(range(1_000))


@app.job(queue="bench")
def burn() -> None:
    _burn()


@app.job(queue="bench")
async def burn_async() -> None:
    _burn()


@app.job(queue="bench", isolated=True)
def burn_isolated() -> None:
    _burn()


@app.job(queue="bench", priority=0)
async def urgent() -> None:
    """Has nothing to do but to start."""
