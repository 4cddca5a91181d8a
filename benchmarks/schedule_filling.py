"""Fills the tables of schedules quickly: rows as `create` would write them, schedules and cursors, by COPY."""

from __future__ import annotations

import math
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from benchmarks.filling import new_run
from benchmarks.harness import advancing, pass_time, say, wait_until
from benchmarks.payload import CALL
from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of_key
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.walls import TICK
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.store.database import Database
from mainspring.store.migrate import check_schema
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from benchmarks.harness import Looker
    from mainspring.store.connection import Connection

CHUNK = 20_000  # schedules in one transaction
SLOWEST = 10_000  # schedules loaded per second; where it takes longer, what is loaded begins later
LEAD = 3.0  # seconds to the first instant, at least, when all are loaded
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe")
MINUTE = 60

SCHEDULE = ("lane", "id", "tenant_id", "name", "job_id", "spec", "payload", "created_by", "changed_by")
CURSOR = ("lane", "schedule_id", "nominal_at", "due_at", "tzdata")
ALIVE = (
    "select exists (select from scheduler_heartbeat where beat > 0)"
    " and exists (select from worker where state = 'live')"
)
_NAMED = "lane = any (array(select lane from lane)) and tenant_id = $1 and name >= $2 and name < $2 || '~'"


class Plan(NamedTuple):
    """A schedule to load: its name, when it runs (as its row says it), and its first instant."""

    name: str
    spec: str
    nominal_at: datetime
    due_at: datetime


# ── which schedules ─────────────────────────────────────────────────────────────────────────────────────────────


def resting(count: int, now: datetime) -> Iterator[Plan]:
    """Monthly schedules, evenly over twenty days; the first of them is due no sooner than in a day."""
    begin = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=2)
    hours = 20 * 24
    for number in range(count):
        at = begin + timedelta(hours=number * hours // count)
        spec = _as_text(_parsed(f"{at.minute} {at.hour} {at.day} * *", "UTC"))
        yield Plan(f"resting-{number}", spec, at, at)


def minutely(prefix: str, per_second: int, begin: datetime, spread: timedelta | None = None) -> Iterator[Plan]:
    """Schedules that run once a minute, so that as many as that are due in each second: at once, or spread."""
    for number in range(MINUTE * per_second):
        name, at = f"{prefix}-{number}", first_of(number, begin)
        schedule = _parsed(f"{at.second} * * * * *", ZONES[number // MINUTE % len(ZONES)], spread)
        first = schedule.next_after(at - TICK, job=name)
        assert first is not None
        yield Plan(name, _as_text(schedule), at, first.due_at)


def first_of(number: int, begin: datetime) -> datetime:
    """The first instant, from a whole second on, of one of the schedules that run once a minute."""
    return begin + timedelta(seconds=(number - begin.second) % MINUTE)


def herd(prefix: str, count: int, at: datetime, spread: timedelta | None = None) -> Iterator[Plan]:
    """Hourly, daily, weekly and monthly schedules in several zones, with one nominal instant in common."""
    schedules = [Schedule.parse(text, zone=zone, spread=spread) for zone in ZONES for text in _texts(at, zone)]
    specs = [_as_text(each) for each in schedules]
    for number in range(count):
        name, kind = f"{prefix}-{number}", number % len(schedules)
        first = schedules[kind].next_after(at - TICK, job=name)
        assert first is not None
        assert first.nominal_at == at
        yield Plan(name, specs[kind], at, first.due_at)


def _texts(at: datetime, zone: str) -> list[str]:
    wall = at.astimezone(ZoneInfo(zone))
    minute, hour = f"{wall.second} {wall.minute}", f"{wall.second} {wall.minute} {wall.hour}"
    return [f"{minute} * * * *", f"{hour} * * *", f"{hour} * * {wall.isoweekday() % 7}", f"{hour} {wall.day} * *"]


@lru_cache(maxsize=1_000)
def _parsed(text: str, zone: str, spread: timedelta | None = None) -> Schedule:
    return Schedule.parse(text, zone=zone, spread=spread)


@lru_cache(maxsize=1_000)
def _as_text(schedule: Schedule) -> str:
    return msgspec.json.encode(schedule.as_document()).decode()


# ── loading ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def load(url: str, plans: Iterable[Plan], count: int) -> float:
    """Add schedules of `noop` and their cursors; answers how many seconds that took."""
    connection = await Database(url).connect("filling")
    try:
        job_id, lanes = (await new_run(connection, 5)).job_id, await check_schema(connection)
        began, left = time.monotonic(), iter(plans)
        with advancing(f"loading {count:,} schedules", count) as advance:
            while chunk := list(islice(left, CHUNK)):
                await _copy(connection, chunk, job_id, lanes)
                advance(len(chunk))
        return time.monotonic() - began
    finally:
        await connection.close()


async def _copy(connection: Connection, chunk: list[Plan], job_id: int, lanes: int) -> None:
    now, payload = datetime.now(UTC), msgspec.json.encode(CALL)
    places = _places(chunk, lanes, now)
    async with connection.transaction():
        await connection.copy_records_to_table(
            "schedule",
            columns=SCHEDULE,
            records=[
                (lane, id_, DEFAULT_TENANT, plan.name, job_id, plan.spec, payload, "benchmark", "benchmark")
                for plan, (lane, id_) in zip(chunk, places, strict=True)
            ],
        )
        await connection.copy_records_to_table(
            "cursor",
            columns=CURSOR,
            records=[
                (lane, id_, plan.nominal_at, plan.due_at, TZDATA_VERSION)
                for plan, (lane, id_) in zip(chunk, places, strict=True)
            ],
        )


def _places(chunk: list[Plan], lanes: int, now: datetime) -> list[tuple[int, UUID]]:
    """The lane of each, by its name, and an id of that lane."""
    chosen = [lane_of_key(DEFAULT_TENANT, plan.name, lanes) for plan in chunk]
    ids = {lane: new_run_ids(count, lane, now) for lane, count in Counter(chosen).items()}
    return [(lane, ids[lane].pop()) for lane in chosen]


async def load_ahead(
    url: str,
    looker: Looker,
    prefix: str,
    count: int,
    plans: Callable[[datetime], Iterable[Plan]],
    lead: float = LEAD,
) -> datetime:
    """Add schedules that begin at a whole second, at least `lead` seconds after all are there; answers with that."""
    margin = lead + 2 + count / SLOWEST
    while True:
        at = await whole_second(looker) + timedelta(seconds=math.ceil(margin))
        await load(url, plans(at), count)
        if await whole_second(looker) + timedelta(seconds=lead) < at:
            return at
        say(f"loading {count:,} schedules took longer than {margin:.0f} s; once more, with twice the time")
        await remove(looker, prefix)
        margin *= 2


async def whole_second(looker: Looker) -> datetime:
    """The present second of the database's clock."""
    now: datetime = await looker.fetchval("select date_trunc('second', clock_timestamp())")
    return now


async def remove(looker: Looker, prefix: str) -> None:
    """Remove the schedules whose names begin so, with their cursors: nothing of them fires any more."""
    found = f"select lane, id from schedule where {_NAMED}"  # noqa: S608  written above
    await looker.execute(
        f"delete from cursor where (lane, schedule_id) in ({found})",  # noqa: S608
        DEFAULT_TENANT,
        f"{prefix}-",
    )
    await looker.execute(f"delete from schedule where {_NAMED}", DEFAULT_TENANT, f"{prefix}-")  # noqa: S608


# ── waiting ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def until(looker: Looker, at: datetime, what: str) -> None:
    """Wait until the database's clock says so."""
    now: datetime = await looker.fetchval("select clock_timestamp()")
    await pass_time(max(0.0, (at - now).total_seconds()), what)


async def until_alive(looker: Looker) -> None:
    """Wait until a scheduler and a worker are at work."""

    async def are_alive() -> bool:
        return bool(await looker.fetchval(ALIVE))

    if not await wait_until(are_alive, seconds=60):
        raise RuntimeError("No scheduler or no worker came to life within a minute.")
