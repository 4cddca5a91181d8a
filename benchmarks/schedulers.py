"""Several schedulers, one of which is killed: how soon the others have its lanes, and how late its runs start.

Two at first, then four, each time with an even load and a worker. Whatever happens, each instant becomes one run.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks import schedule_checking as checking
from benchmarks import schedule_filling as filling
from benchmarks.harness import Numbers, bar, durable_server, fresh_database, observer, percentile, say, wait_until
from benchmarks.processes import Scheduler, Worker
from mainspring.scheduler.lanes import lanes_of

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from benchmarks.harness import Looker

SIZES = (2, 4)
KINDS = (
    "takeover_s",  # from the kill to the first act of firing in lanes of the one that was killed
    "its_lateness_p50_ms",  # of what was due in those lanes from the kill on, until a while after they were taken over
    "its_lateness_p99_ms",
    "lateness_p99_ms",  # of the same seconds in all other lanes
    "missing",
    "extra",
    "early",
)
FIELDS = tuple(f"{kind}_of_{size}" for size in SIZES for kind in KINDS)
DUE = 1_000
WARM_UP, AFTER = 3, 10  # seconds before the kill, and how many after it count as its time

STARTED = "select count(*) from attempt where due_at >= $1 and due_at < $2 and started_at is not null"
FIRST_FIRED = "select min(fired_at) from occurrence where lane = any ($1::smallint[]) and fired_at > $2"


async def run(seconds: float, *, due: int = DUE) -> Numbers:
    numbers: Numbers = {}
    async with durable_server() as server:
        for size in SIZES:
            url = await fresh_database(server, f"schedulers_{size}")
            async with observer(url) as looker:
                found = await _with(size, url, looker, max(AFTER, int(seconds)), due)
            say(f"{size} schedulers: lanes taken over after {found['takeover_s']:.1f} s")
            numbers |= {f"{kind}_of_{size}": found[kind] for kind in KINDS}
    return numbers


async def _with(size: int, url: str, looker: Looker, seconds: int, due: int) -> Numbers:
    with ExitStack() as stack:
        schedulers = [stack.enter_context(Scheduler(url)) for _ in range(size)]
        stack.enter_context(Worker(url))
        await filling.until_alive(looker)
        ids = await _settled(looker, size)
        begin = await filling.load_ahead(
            url, looker, "even", filling.MINUTE * due, lambda at: filling.minutely("even", due, at)
        )
        await filling.until(looker, begin + timedelta(seconds=WARM_UP), "until they fire")
        victim, lanes = _with_most_lanes(schedulers, ids, await looker.fetchval("select count(*) from lane"))
        killed_at = await _kill(victim, looker)
        end = begin + timedelta(seconds=WARM_UP + seconds)
        await filling.until(looker, end, f"{due:,} due per second")
        await _until_started(looker, begin, end, due * (WARM_UP + seconds))
    return await _found(looker, due, begin, end, killed_at, lanes)


async def _settled(looker: Looker, size: int) -> dict[int, UUID]:
    """Wait until each has seen all others, so that the lanes are shared; answers with their ids by process."""

    async def have_met() -> bool:
        return bool(await looker.fetchval("select count(*) = $1 from scheduler_heartbeat where beat > 1", size))

    if not await wait_until(have_met, seconds=60):
        raise RuntimeError(f"{size} schedulers did not come to life within a minute.")
    return {row["pid"]: row["id"] for row in await looker.fetch("select pid, id from scheduler_heartbeat")}


def _with_most_lanes(schedulers: list[Scheduler], ids: dict[int, UUID], lanes: int) -> tuple[Scheduler, list[int]]:
    shares = [(each, lanes_of(ids[each.process.pid], ids.values(), lanes)) for each in schedulers]
    return max(shares, key=lambda share: len(share[1]))


async def _kill(scheduler: Scheduler, looker: Looker) -> datetime:
    scheduler.process.kill()
    await asyncio.to_thread(scheduler.process.wait)
    killed_at: datetime = await looker.fetchval("select clock_timestamp()")
    return killed_at


async def _until_started(looker: Looker, begin: datetime, end: datetime, count: int) -> None:
    async def have_started() -> bool:
        return int(await looker.fetchval(STARTED, begin, end)) >= count

    if not await wait_until(have_started, seconds=60, every=1.0):
        say("not all runs have started a minute after the last was due; those are missing")


async def _found(
    looker: Looker, due: int, begin: datetime, end: datetime, killed_at: datetime, lanes: list[int]
) -> Numbers:
    first_fired: datetime = await looker.fetchval(FIRST_FIRED, lanes, killed_at)
    ledger, started = await checking.recorded(looker, "even", begin, end)
    numbers = checking.faults(list(checking.expected_of_minutely("even", due, begin, end)), ledger, started)
    lane_of = {row["name"]: row["lane"] for row in await looker.fetch("select name, lane from schedule")}
    meanwhile = [each for each in started if killed_at <= each.due_at < killed_at + timedelta(seconds=AFTER)]
    its = checking.lateness_ms([each for each in meanwhile if lane_of[each.name] in lanes])
    others = checking.lateness_ms([each for each in meanwhile if lane_of[each.name] not in lanes])
    return numbers | {
        "takeover_s": (first_fired - killed_at).total_seconds(),
        "its_lateness_p50_ms": percentile(its, 0.5),
        "its_lateness_p99_ms": percentile(its, 0.99),
        "lateness_p99_ms": percentile(others, 0.99),
    }


def show(numbers: Numbers) -> str:
    lines = []
    for size in SIZES:
        of = {kind: numbers[f"{kind}_of_{size}"] for kind in KINDS}
        lines += [
            bar(f"{size} schedulers, one killed", of["takeover_s"], 5.0, "s until others fire in its lanes"),
            f"  its runs start {of['its_lateness_p50_ms']:.0f} ms late (p50), {of['its_lateness_p99_ms']:.0f} ms (p99);"
            f" all others {of['lateness_p99_ms']:.0f} ms (p99)",
            f"  missing {of['missing']:.0f} · extra {of['extra']:.0f} · early {of['early']:.0f}",
        ]
    return "\n".join(lines)
