"""Jobs of flows, in an application of their own."""

from __future__ import annotations

from mainspring import Mainspring

app = Mainspring()


@app.job(queue="bench")
async def step(number: int) -> int:
    """One link of a chain, or one of a group."""
    return number


@app.job(queue="bench")
async def gather(numbers: list[int]) -> int:
    """The callback of a group: it gets what all of them returned."""
    return len(numbers)
