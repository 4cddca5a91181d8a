"""Many schedules at once: all of them, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.clock import instant
from mainspring.control.schedule_errors import batch_too_large, names_repeated, schedules_exist
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.calendars import resolved
from mainspring.store import notify, schedules
from mainspring.store.schedules import NewSchedule
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.calendars import Calendars
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedule_transactions import ScheduleTransactions
    from mainspring.control.schedules import Schedules
    from mainspring.model.actor import Actor
    from mainspring.schedule.schedule import Schedule
    from mainspring.scheduler.calendars import ResolvedSchedule
    from mainspring.store.connection import Connection, Record
    from mainspring.store.schedules import Content

MAX_BATCH = 100_000
ROWS = 2_000  # per statement
NAMED = 10  # names that the audit tells


class Resolving:
    """Finds what is in the stored calendars of schedules; of those that many requests share, once."""

    def __init__(self, rows: Sequence[Record]) -> None:
        self._rows = rows
        self._found: dict[int, ResolvedSchedule] = {}

    def of(self, schedule: Schedule) -> ResolvedSchedule:
        found = self._found.get(id(schedule))
        if found is None:
            found = self._found[id(schedule)] = resolved(schedule, self._rows)
        return found


class ScheduleBatches:
    """Makes many schedules in one transaction."""

    def __init__(
        self,
        *,
        clock: Clock,
        queries: ScheduleQueries,
        schedules: Schedules,
        calendars: Calendars,
        transactions: ScheduleTransactions,
    ) -> None:
        self._clock = clock
        self._queries = queries
        self._schedules = schedules
        self._calendars = calendars
        self._transactions = transactions

    async def create_many(
        self, actor: Actor, requests: Iterable[ScheduleRequest], *, connection: object | None = None
    ) -> list[UUID]:
        """Make all of these schedules or none, at most 100,000; answers with their ids.

        `await app.schedules.create_many([job.scheduled(f"remind-{n}", "every day at 9").request(n) for n in numbers])`.
        A name that is taken, or given twice, refuses them all.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: they are there if and only if you commit.
        """
        wanted = _checked(list(requests))
        if not wanted:
            return []
        at = self._transactions.on(connection)

        async def attempt() -> dict[str, UUID]:
            contents = await at.ours(self._contents(actor, wanted))
            jobs = {contents[request.name].job: request.job for request in wanted}
            return await at.act(lambda inside: self._create_all(inside, actor, wanted, contents), jobs=jobs)

        ids = await at.known_anew(attempt)
        return [ids[request.name] for request in wanted]

    async def _create_all(
        self, connection: Connection, actor: Actor, wanted: Sequence[ScheduleRequest], contents: dict[str, Content]
    ) -> dict[str, UUID]:
        """Inside a transaction; answers with their ids by their names."""
        ids: dict[str, UUID] = {}
        lanes, now = self._by_lane(actor, wanted), await schedules.now(connection)
        names = {name for request in wanted for name in request.schedule.stored_calendars}
        known = Resolving(await self._calendars.known(connection, actor, names, holds=True))
        for lane, some in _pieces(lanes):
            made = self._new(lane, some, contents, known, now)
            await _create(connection, actor, lane, made)
            ids.update((each.name, each.id) for each in made)
        await _audit(connection, actor, next(iter(lanes)), ids)
        notify.send(connection, map(notify.schedule, lanes))
        return ids

    async def _contents(self, actor: Actor, wanted: Sequence[ScheduleRequest]) -> dict[str, Content]:
        """By their names. What many have in common is worked out once."""
        common: dict[tuple[object, ...], Content] = {}
        contents = {}
        for request in wanted:
            kind = (request.job, id(request.schedule), id(request.options), request.catch_up)
            content = common.get(kind)
            if content is None:
                content = common[kind] = await self._schedules.content(actor, request)
            contents[request.name] = content._replace(payload=request.payload)
        return contents

    def _by_lane(self, actor: Actor, wanted: Sequence[ScheduleRequest]) -> dict[int, list[ScheduleRequest]]:
        """In one order for everybody, so that two batches with the same names wait for each other on one side only."""
        lanes: dict[int, list[ScheduleRequest]] = {}
        for request in sorted(wanted, key=lambda each: each.name):
            lanes.setdefault(self._queries.lane(actor, request.name), []).append(request)
        return dict(sorted(lanes.items()))

    def _new(
        self,
        lane: int,
        some: Sequence[ScheduleRequest],
        contents: dict[str, Content],
        known: Resolving,
        now: datetime,
    ) -> list[NewSchedule]:
        made = []
        for request, schedule_id in zip(some, new_run_ids(len(some), lane, instant(self._clock)), strict=True):
            found = known.of(request.schedule)
            first = request.first_after(now, found.schedule)
            made.append(
                NewSchedule(
                    schedule_id, request.name, contents[request.name], first.nominal_at, first.due_at, found.revision
                )
            )
        return made


def _checked(requests: list[ScheduleRequest]) -> list[ScheduleRequest]:
    if len(requests) > MAX_BATCH:
        raise batch_too_large(len(requests), MAX_BATCH)
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    for request in requests:
        if request.name in seen:
            repeated[request.name] = None
        seen.add(request.name)
    if repeated:
        raise names_repeated(list(repeated))
    return requests


def _pieces(lanes: dict[int, list[ScheduleRequest]]) -> Iterator[tuple[int, list[ScheduleRequest]]]:
    for lane, requests in lanes.items():
        for start in range(0, len(requests), ROWS):
            yield lane, requests[start : start + ROWS]


async def _create(connection: Connection, actor: Actor, lane: int, made: list[NewSchedule]) -> None:
    free = await schedules.create_many(connection, lane, made, TZDATA_VERSION, tenant_id=actor.tenant, actor=actor.name)
    if len(free) < len(made):
        raise schedules_exist([each.name for each in made if each.id not in free])


async def _audit(connection: Connection, actor: Actor, lane: int, ids: dict[str, UUID]) -> None:
    """One row for all of them: the first few stand for the rest."""
    await schedules.audit(
        connection,
        lane,
        next(iter(ids.values())),
        "create_many",
        tenant_id=actor.tenant,
        actor=actor.name,
        detail={"count": len(ids), "names": list(ids)[:NAMED]},
    )
