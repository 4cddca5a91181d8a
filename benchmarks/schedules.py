"""Schedules: what many of them at rest cost, what an edit takes, how fast they fire, and how late their runs start.

First they are loaded. Then, one after the other: a tick with nothing due; a forecast; edits of one schedule while
others fire; many that are due at once, fired by one scheduler without workers; and, with workers, so many due per
second, evenly (`lateness_…`: what the engine adds) and all of them at each whole second (`bursts_…`: there a run also
waits for those of its instant that start before it). Those that fire come on top of those at rest.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from benchmarks import schedule_checking as checking
from benchmarks import schedule_filling as filling
from benchmarks.harness import (
    Numbers,
    advancing,
    bar,
    durable_server,
    fresh_database,
    observer,
    percentile,
    say,
    wait_until,
)
from benchmarks.jobs import noop
from benchmarks.payload import CALL
from benchmarks.processes import Scheduler, Worker
from benchmarks.schedule_filling import until, until_alive
from mainspring import Mainspring
from mainspring.clock import SystemClock
from mainspring.scheduler.horizon import CALM
from mainspring.scheduler.scheduler import FiringLoop, LaneAssignment, SchedulerIdentity
from mainspring.store.database import Database
from mainspring.store.link import Link
from mainspring.store.migrate import check_schema
from mainspring.wiring.scheduler import lane_firer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from benchmarks.harness import Looker
    from mainspring.store.connection import Connection

FIELDS = (
    "load_per_s",
    "idle_tick_ms",
    "forecast_ms",
    "rss_mb",
    "edit_p50_ms",
    "edit_p99_ms",
    "fired_per_s",
    "lateness_p50_ms",
    "lateness_p95_ms",
    "lateness_p99_ms",
    "bursts_p50_ms",
    "bursts_p95_ms",
    "bursts_p99_ms",
    "missing",
    "extra",
    "early",
)
COUNT, DUE = 1_000_000, 5_000
TICKS = 300
FORECASTS = 7
FIRED_ALONE = 200_000  # or as many as are at rest, if those are fewer
FIRING_DURING_EDITS, EDITS_PER_SECOND = 2_000, 50
WARM_UP = 3  # seconds of an even load that do not count
EVENLY = timedelta(seconds=1)  # a spread of so much makes what is due in each second even
PATIENCE = 180.0
SHARES = (50, 95, 99)
FAULTS = ("missing", "extra", "early")
ADDED = (*FAULTS, "rss_mb")  # over all that is measured

STARTED = f"select count(*) {checking.OF_INSTANTS}"
FIRED_BETWEEN = "select count(*) from occurrence where nominal_at >= $1 and nominal_at < $2 and fired_at < $2"
# Others with the same instant were staged before it; these are due before the scheduler starts.
ALONE = "from occurrence where nominal_at = $1 and fired_at >= $1"
FIRED = f"select count(*) {ALONE}"
# The last batch is left out: what it took is not between the first act of firing and its own.
FIRE_RATE = f"""
select count(*) filter (where fired_at < last_at) / extract(epoch from max(fired_at) - min(fired_at))::double precision
from (select fired_at, max(fired_at) over () as last_at {ALONE}) as fired"""  # noqa: S608  nothing comes from outside


async def run(seconds: float, *, count: int = COUNT, due: int = DUE) -> Numbers:
    async with durable_server() as server:
        url = await fresh_database(server, "schedules")
        async with observer(url) as looker:
            numbers = await _load(url, looker, count) | await _idle_tick(url) | await _forecast(url)
            firing = [
                await _edits(url, looker, max(1.0, seconds / 3), min(due, FIRING_DURING_EDITS)),
                await _fired_alone(url, looker, min(count, FIRED_ALONE)),
                await _load_of("even", url, looker, max(1, int(seconds)), due, EVENLY),
                await _load_of("bursts", url, looker, max(1, int(seconds / 3)), due, None),
            ]
    for each in firing:
        numbers |= {name: value for name, value in each.items() if name not in ADDED}
    return (
        numbers
        | {name: sum(each.get(name, 0) for each in firing) for name in FAULTS}
        | {"rss_mb": max(each["rss_mb"] for each in firing)}
    )


# ── at rest ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _load(url: str, looker: Looker, count: int) -> Numbers:
    now = await filling.whole_second(looker)
    span = await filling.load(url, filling.resting(count, now), count)
    say(f"{count:,} schedules loaded, {count / span:,.0f}/s; vacuum and checkpoint")
    for statement in ("vacuum (analyze) schedule", "vacuum (analyze) cursor", "checkpoint"):
        await looker.execute(statement)
    return {"load_per_s": count / span}


async def _idle_tick(url: str) -> Numbers:
    """The median of steps over all lanes; in a scheduler two loops share them."""
    clock = SystemClock()
    link = Link(Database(url), clock, "idle tick")
    connection = await link.get()
    lanes = await check_schema(connection)
    assignment = LaneAssignment(SchedulerIdentity(id=uuid4(), lanes=lanes, clock=clock, version="benchmark"))
    assignment.lanes, assignment.horizon = list(range(lanes)), CALM
    loop = FiringLoop(assignment=assignment, clock=clock, link=link, firer=lane_firer(clock), share=lambda _: True)
    tick_ms = statistics.median([await _tick(loop, connection) for _ in range(TICKS)])
    await link.close()
    say(f"a tick with nothing due: {tick_ms:.2f} ms")
    return {"idle_tick_ms": tick_ms}


async def _tick(loop: FiringLoop, connection: Connection) -> float:
    began = time.monotonic()
    if await loop.step(connection) <= 0:
        raise RuntimeError("A schedule at rest is due, so this tick is not idle.")
    return 1000 * (time.monotonic() - began)


async def _forecast(url: str) -> Numbers:
    """The median of forecasts over a day; the first one is said apart: its process knows no schedule yet."""
    async with Mainspring(url) as client:
        spans = [await _span_ms(client.schedules.forecast) for _ in range(1 + FORECASTS)]
    say(f"a forecast: {statistics.median(spans[1:]):.0f} ms, the first one {spans[0]:.0f} ms")
    return {"forecast_ms": statistics.median(spans[1:])}


async def _span_ms(act: Callable[[], Awaitable[object]]) -> float:
    began = time.monotonic()
    await act()
    return 1000 * (time.monotonic() - began)


# ── edits ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def _edits(url: str, looker: Looker, seconds: float, per_second: int) -> Numbers:
    """How long it takes to create, update, pause and delete one schedule, one act at a time, while others fire."""
    with Scheduler(url) as scheduler, Worker(url):
        await until_alive(looker)
        begin = await filling.load_ahead(
            url, looker, "edits", filling.MINUTE * per_second, lambda at: filling.minutely("edits", per_second, at)
        )
        await until(looker, begin + timedelta(seconds=WARM_UP), "until they fire")
        spans = await _edited(url, seconds)
        end = await filling.whole_second(looker)
        fired = await looker.fetchval(FIRED_BETWEEN, end - timedelta(seconds=int(seconds)), end)
        rss_mb = scheduler.peak_memory_mb()
    await filling.remove(looker, "edits")
    for act, its in spans.items():
        say(f"{act}: p50 {percentile(its, 0.5):.1f} ms, p99 {percentile(its, 0.99):.1f} ms")
    say(f"meanwhile {fired / int(seconds):,.0f}/s fired")
    every = [span for its in spans.values() for span in its]
    return {"edit_p50_ms": percentile(every, 0.5), "edit_p99_ms": percentile(every, 0.99), "rss_mb": rss_mb}


async def _edited(url: str, seconds: float) -> dict[str, list[float]]:
    spans: dict[str, list[float]] = defaultdict(list)
    async with Mainspring(url) as client:
        began, count = time.monotonic(), 0
        with advancing("editing", int(EDITS_PER_SECOND * seconds)) as advance:
            while time.monotonic() < began + seconds:
                for act, edit in _acts(client, f"edited-{count}"):
                    await asyncio.sleep(max(0.0, began + count / EDITS_PER_SECOND - time.monotonic()))
                    spans[act].append(await _span_ms(edit))
                    count += 1
                    advance(1)
    return spans


def _acts(client: Mainspring, name: str) -> list[tuple[str, Callable[[], Awaitable[object]]]]:
    """With so many instants, there is always something staged that has to be taken back."""
    schedules = client.schedules
    return [
        ("create", lambda: schedules.create(name, noop.name, "* * * * * *", CALL)),
        ("update", lambda: schedules.update(name, when="*/2 * * * * *")),
        ("pause", lambda: schedules.pause(name, reason="benchmark")),
        ("delete", lambda: schedules.delete(name)),
    ]


# ── firing ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def _fired_alone(url: str, looker: Looker, count: int) -> Numbers:
    """How many schedules per second one scheduler fires when all are due and nobody executes their runs."""
    at = await filling.load_ahead(url, looker, "alone", count, lambda at: filling.herd("alone", count, at))
    await until(looker, at, "until they are due")

    async def have_fired() -> bool:
        return int(await looker.fetchval(FIRED, at)) >= count

    with Scheduler(url) as scheduler:
        if not await wait_until(have_fired, seconds=PATIENCE, every=0.5):
            raise RuntimeError(f"Not all of {count:,} schedules fired within {PATIENCE:.0f} s.")
        rss_mb = scheduler.peak_memory_mb()
    fired_per_s = float(await looker.fetchval(FIRE_RATE, at))
    await filling.remove(looker, "alone")
    await looker.execute("truncate ready")
    say(f"one scheduler fired {fired_per_s:,.0f}/s")
    return {"fired_per_s": fired_per_s, "rss_mb": rss_mb}


async def _load_of(prefix: str, url: str, looker: Looker, seconds: int, due: int, spread: timedelta | None) -> Numbers:
    """How late handlers start with so many runs due in each second; what is missing, or should not be there."""
    with Scheduler(url) as scheduler, Worker(url):
        await until_alive(looker)
        at = await filling.load_ahead(
            url, looker, prefix, filling.MINUTE * due, lambda at: filling.minutely(prefix, due, at, spread)
        )
        begin = at + timedelta(seconds=WARM_UP)
        end = begin + timedelta(seconds=seconds)
        await until(looker, end + (spread or timedelta(0)), f"{due:,} due per second ({prefix})")
        await _until_started(looker, prefix, begin, end, due * seconds)
        rss_mb = scheduler.peak_memory_mb()
    ledger, started = await checking.recorded(looker, prefix, begin, end)
    expected = list(checking.expected_of_minutely(prefix, due, begin, end))
    found = checking.faults(expected, ledger, started)
    lateness = checking.percentiles(checking.lateness_ms(started), "lateness" if spread else prefix)
    await filling.remove(looker, prefix)
    say(f"{prefix}: {len(started):,} of {len(expected):,} runs started")
    return lateness | found | {"rss_mb": rss_mb}


async def _until_started(looker: Looker, prefix: str, begin: datetime, end: datetime, count: int) -> None:
    async def have_started() -> bool:
        return int(await looker.fetchval(STARTED, begin, end, prefix)) >= count

    if not await wait_until(have_started, seconds=PATIENCE, every=1.0):  # counting takes processor time
        say(f"not all runs have started {PATIENCE:.0f} s after the last was due; those are missing")


def show(numbers: Numbers) -> str:
    late = {f"{name} p{share}": numbers[f"{name}_p{share}_ms"] for name in ("lateness", "bursts") for share in SHARES}
    return "\n".join(
        [
            bar("loaded", numbers["load_per_s"], max(numbers["load_per_s"], numbers["fired_per_s"]), "schedules/s"),
            bar("fired", numbers["fired_per_s"], max(numbers["load_per_s"], numbers["fired_per_s"]), "schedules/s"),
            *(bar(name, each, max(late.values()), "ms") for name, each in late.items()),
            f"  missing {numbers['missing']:.0f} · extra {numbers['extra']:.0f} · early {numbers['early']:.0f}",
            f"  an edit: p50 {numbers['edit_p50_ms']:.1f} ms, p99 {numbers['edit_p99_ms']:.1f} ms"
            f" · an idle tick: {numbers['idle_tick_ms']:.2f} ms",
            f"  a forecast: {numbers['forecast_ms']:.0f} ms · scheduler: {numbers['rss_mb']:.0f} MB",
        ]
    )
