"""Jobs with limits, in an application of their own: so that other benchmarks run without any."""

from __future__ import annotations

import asyncio

from benchmarks.jobs import executed
from mainspring import Job, Limit, Mainspring

app = Mainspring()

SHARED_SECONDS = 0.02


@app.job(queue="bench", limit=Limit(1, key="customer"))
async def keyed(customer: int, plan: str, note: str) -> None:
    """As little as `noop`, one at a time for each customer."""
    executed[0] += 1


@app.job(queue="bench", limit=Limit(1, key="customer", order="strict"))
async def serial(customer: int, plan: str, note: str) -> None:
    """The same, in the order of acceptance."""
    executed[0] += 1


@app.job(queue="bench", limit=Limit(rate=2_000, burst=50))
async def paced(customer: int, plan: str, note: str) -> None:
    """So many per second, and no more."""
    executed[0] += 1


async def take_a_moment(customer: str) -> None:
    """Customers take turns; each run takes a moment."""
    await asyncio.sleep(SHARED_SECONDS)


def add_shared(owner: Mainspring) -> Job[[str], None]:
    return owner.job(name="shared", queue="bench", limit=Limit(share="customer"))(take_a_moment)


def add_moment(owner: Mainspring) -> Job[[str], None]:
    """The same without a limit."""
    return owner.job(name="moment", queue="bench")(take_a_moment)


async def do_nothing() -> None:
    executed[0] += 1


def add_plain(owner: Mainspring) -> Job[[], None]:
    return owner.job(name="plain", queue="bench")(do_nothing)


add_shared(app)
add_moment(app)
add_plain(app)
