"""Queues: pausing them, and measuring what waits in them and how fast it moves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from mainspring.model.admission import Pause
from mainspring.model.capacity import (
    NOTHING_LATER,
    Later,
    LineLoad,
    Queue,
    Room,
    Sample,
    lacking_slots,
    measured,
    per_second,
    starts_per_second,
)
from mainspring.model.ids import HOMES, home_of
from mainspring.model.line import Line
from mainspring.model.run import PRIORITIES
from mainspring.store.runs import lines_in_use
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

COUNTED = 20_000  # per lane and line: counting a backlog of millions would slow those who work it off
SAMPLE_SECONDS = 20.0
SAMPLES_LANE = HOMES[0]
WINDOW_SECONDS = 60.0  # over which rates are measured


async def queues(connection: Connection, *, tenant_id: int) -> list[Queue]:
    """Every queue with its depth, its rates and the slots it wants."""
    rows = await _depths(connection, tenant_id)
    later = await _later(connection, None, tenant_id)
    lines = [replace(line, later=later.get(line.id, NOTHING_LATER)) for line in await _lines(connection, rows)]
    rooms = (await _rooms(connection)).values()
    decided = {row["queue"]: {name: row[name] for name in ("paused_at", "paused_by", "pause_reason")} for row in rows}
    return [
        measured(list(group), slots=sum(room.slots for room in rooms if name in room.queues), **decided[name])
        for name, group in groupby(lines, key=lambda line: line.queue)
    ]


async def wanted_slots(
    connection: Connection, names: Sequence[str], ours: Sequence[UUID], *, labels: Sequence[str] = ()
) -> int:
    """How many slots are wanted of us: by the lines of all tenants that we serve, less what other workers have."""
    rows = await _depths(connection, None)
    paused = {row["line_id"] for row in rows if row["paused_at"] is not None}
    served: dict[tuple[str, frozenset[str]], list[LineLoad]] = {}
    for line in await _lines(connection, rows):
        if line.queue in names and line.id not in paused and line.labels <= {*labels}:
            served.setdefault((line.queue, line.labels), []).append(line)
    wanted = {place: measured(lines, slots=0).wanted_slots for place, lines in served.items()}
    rooms = await _rooms(connection)
    return lacking_slots(wanted, [room for worker_id, room in rooms.items() if worker_id not in ours])


async def loads_by_tenant(connection: Connection, tenant_id: int | None = None) -> dict[int, tuple[int, int]]:
    """How many runs are in line, counted up to a bound, and how many workers hold: of each tenant that has lines."""
    rows, loads = await _depths(connection, tenant_id), defaultdict[int, list[Sample]](list)
    tallies = await _tallies(connection)
    for row in rows:
        loads[row["tenant_id"]].append(_sample(row, tallies))
    return {
        tenant: (sum(each.depth for each in some), sum(each.holding for each in some)) for tenant, some in loads.items()
    }


async def take_samples(connection: Connection) -> bool:
    """Remember what every line of every tenant looks like now, unless someone just did."""
    if await load("queues/is_sampled").fetchval(connection, lane=SAMPLES_LANE, every=SAMPLE_SECONDS * 0.8):
        return False
    rows = await _depths(connection, None)
    tallies = await _tallies(connection)
    samples = [(row["line_id"], _sample(row, tallies)) for row in rows]
    await load("queues/add_samples").execute(
        connection,
        lane=SAMPLES_LANE,
        lines=[line for line, _ in samples],
        depths=[each.depth for _, each in samples],
        holdings=[each.holding for _, each in samples],
        finished=[each.finished for _, each in samples],
        busy_seconds=[each.busy_seconds for _, each in samples],
    )
    return True


async def add_promotions(connection: Connection, promoted: Mapping[int, int]) -> None:
    """A keeper says how many runs of each line it has promoted since it last did."""
    if promoted:
        await load("queues/add_promotions").execute(
            connection, lane=SAMPLES_LANE, lines=list(promoted), runs=list(promoted.values())
        )


async def tidy(connection: Connection) -> None:
    """Forget samples that are too old to be compared with, and add up what workers long gone have done."""
    await load("queues/forget_samples").execute(connection, lane=SAMPLES_LANE, window=WINDOW_SECONDS * 2)
    await load("queues/forget_promotions").execute(connection, lane=SAMPLES_LANE, window=WINDOW_SECONDS * 2)
    for lane in HOMES:
        await load("queues/fold_tallies").execute(connection, lane=lane)


async def tell(connection: Connection, worker_id: UUID, lines: Mapping[int, tuple[int, float, int]]) -> None:
    """A worker says, for each of its lines, how many attempts it finished, how long those took, and what it holds."""
    await load("queues/tally").execute(
        connection,
        lane=home_of(worker_id),
        worker=worker_id,
        lines=list(lines),
        finished=[each[0] for each in lines.values()],
        busy_seconds=[each[1] for each in lines.values()],
        holdings=[each[2] for each in lines.values()],
    )


async def pause(connection: Connection, name: str, *, tenant_id: int, actor: str, reason: str) -> bool:
    """False when it was paused before."""
    return bool(
        await load("queues/pause").fetchval(connection, tenant=tenant_id, queue=name, actor=actor, reason=reason)
    )


async def resume(connection: Connection, name: str, *, tenant_id: int, actor: str, reason: str) -> bool:
    """False when it was not paused."""
    return bool(
        await load("queues/resume").fetchval(connection, tenant=tenant_id, queue=name, actor=actor, reason=reason)
    )


async def find_pause(connection: Connection, name: str, *, tenant_id: int) -> Pause | None:
    """Who paused a queue, and why, if somebody has."""
    row = await load("queues/find_pause").fetchrow(connection, tenant=tenant_id, queue=name)
    if row is None:
        return None
    return Pause(at=row["paused_at"], by=row["paused_by"], reason=row["pause_reason"] or "")


async def finished_per_s(connection: Connection, line_id: int) -> float | None:
    """How many attempts of a line end per second, lately; None as long as there is nothing to compare."""
    now = (await _tallies(connection)).get(line_id)
    then = (await _earlier(connection)).get(line_id)
    if now is None or then is None or then.age <= 0:
        return None
    return float(max(0, now["finished"] - then.finished) / then.age)


async def starts_per_s(connection: Connection, line_id: int, occupied: int) -> float | None:
    """How fast runs of a line get slots, of which so many have runs of it now; None: there is nothing to compare."""
    now = (await _tallies(connection)).get(line_id)
    if now is None:
        return None
    sample = Sample(depth=0, holding=now["holding"], finished=now["finished"], busy_seconds=now["busy_seconds"])
    return starts_per_second(sample, (await _earlier(connection)).get(line_id), occupied)


async def later_of(connection: Connection, queue: str, *, tenant_id: int) -> tuple[int, float | None]:
    """How many runs of a queue wait for their time, and how many of them were promoted per second, lately."""
    own, earlier = await _later(connection, queue, tenant_id), await _earlier(connection)
    rates = [per_second(line.promoted, earlier.get(line_id)) for line_id, line in own.items()]
    known = [rate for rate in rates if rate is not None]
    return sum(line.scheduled for line in own.values()), sum(known) if known else None


async def _later(connection: Connection, queue: str | None, tenant_id: int) -> dict[int, Later]:
    """What waits for its time in each line."""
    rows = await load("queues/scheduled").fetch(connection, tenant=tenant_id, queue=queue, bound=COUNTED)
    promoted = {
        row["line_id"]: row["runs"]
        for row in await load("queues/promotions").fetch(connection, lane=SAMPLES_LANE, window=WINDOW_SECONDS)
    }
    return {row["line_id"]: Later(scheduled=row["scheduled"], promoted=promoted.get(row["line_id"], 0)) for row in rows}


async def _depths(connection: Connection, tenant_id: int | None) -> list[Record]:
    in_use = None if tenant_id is not None else await _in_use(connection)
    return await load("queues/depths").fetch(
        connection, tenant=tenant_id, bound=COUNTED, priorities=list(PRIORITIES), in_use=in_use
    )


async def _in_use(connection: Connection) -> list[int] | None:
    """The lines with runs, of all tenants; None if that is not known: then each is looked at."""
    pairs = await lines_in_use(connection)
    return None if pairs is None else sorted({line for _, line in pairs})


async def _rooms(connection: Connection) -> dict[UUID, Room]:
    return {
        row["id"]: Room(queues=frozenset(row["queues"]), labels=frozenset(row["labels"]), slots=row["slots"])
        for row in await load("queues/slots").fetch(connection)
    }


async def _tallies(connection: Connection) -> dict[int, Record]:
    return {row["line_id"]: row for row in await load("queues/tallies").fetch(connection, lanes=HOMES)}


async def _earlier(connection: Connection) -> dict[int, Sample]:
    """What each line looked like a while ago."""
    return {
        row["line_id"]: Sample(**{name: row[name] for name in Sample.__dataclass_fields__})
        for row in await load("queues/samples").fetch(connection, lane=SAMPLES_LANE, window=WINDOW_SECONDS)
    }


async def _lines(connection: Connection, rows: Sequence[Record]) -> list[LineLoad]:
    tallies, earlier = await _tallies(connection), await _earlier(connection)
    return [
        LineLoad(
            id=row["line_id"],
            queue=row["queue"],
            labels=frozenset(Line.of(row["queue"], row["labels"]).labels),
            now=_sample(row, tallies),
            then=earlier.get(row["line_id"]),
            oldest_seconds=row["oldest_seconds"],
        )
        for row in rows
    ]


def _sample(row: Record, tallies: Mapping[int, Record]) -> Sample:
    known = tallies.get(row["line_id"])
    if known is None:
        return Sample(depth=row["depth"], holding=0, finished=0, busy_seconds=0.0)
    return Sample(
        depth=row["depth"],
        holding=known["holding"],
        finished=known["finished"],
        busy_seconds=known["busy_seconds"],
    )
