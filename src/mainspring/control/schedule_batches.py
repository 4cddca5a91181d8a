"""Many schedules at once: all of them, or none."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from mainspring.clock import instant
from mainspring.control.schedule_batch import FirstInstants, ScheduleBatch, checked_batch
from mainspring.control.schedule_errors import refused_in_batch, schedules_exist
from mainspring.errors import InvalidInput, InvalidSchedule, NotFound, shortened
from mainspring.model.scheduling import PutOutcome, PutReport
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.store import notify, schedules
from mainspring.store.schedules import NewSchedule
from mainspring.store.submissions import new_run_ids

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from uuid import UUID

    from mainspring.clock import Clock
    from mainspring.control.calendars import Calendars
    from mainspring.control.schedule_queries import ScheduleQueries
    from mainspring.control.schedule_replacing import ScheduleReplacer
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.control.schedule_transactions import ScheduleTransactions
    from mainspring.control.schedules import Schedules
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.schedules import Content

T = TypeVar("T")

ROWS = 2_000  # per statement
NAMED = 10  # names that the audit tells


class ScheduleBatches:
    """Makes and replaces many schedules in one transaction."""

    def __init__(
        self,
        *,
        clock: Clock,
        queries: ScheduleQueries,
        schedules: Schedules,
        calendars: Calendars,
        replacer: ScheduleReplacer,
        transactions: ScheduleTransactions,
    ) -> None:
        self._clock = clock
        self._queries = queries
        self._schedules = schedules
        self._calendars = calendars
        self._replacer = replacer
        self._transactions = transactions

    async def create_many(
        self, actor: Actor, requests: Iterable[ScheduleRequest], *, connection: object | None = None
    ) -> list[UUID]:
        """Make all of these schedules or none, at most 100,000; answers with their ids.

        `await app.schedules.create_many([job.scheduled(f"remind-{n}", "0 9 * * *").request(n) for n in numbers])`.
        A name that is taken, or given twice, refuses them all.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: they are there if and only if you commit.
        """
        wanted = checked_batch(list(requests))
        ids = await self._act(actor, wanted, connection, self._create_all) if wanted else {}
        return [ids[request.name] for request in wanted]

    async def put_many(
        self, actor: Actor, requests: Iterable[ScheduleRequest], *, connection: object | None = None
    ) -> PutReport:
        """Make all of these schedules what is asked for, or none, at most 100,000; answers with what that took.

        Those that are so already are left alone, so the same call again does nothing; others get a new version, as by
        `put`; and those that are not there are made. A name that is given twice refuses them all.

        `connection` is your own asyncpg, psycopg or SQLAlchemy connection: it happens if and only if you commit.
        """
        wanted = checked_batch(list(requests))
        return await self._act(actor, wanted, connection, self._put_all) if wanted else PutReport()

    async def _act(
        self,
        actor: Actor,
        wanted: Sequence[ScheduleRequest],
        connection: object | None,
        act: Callable[[Connection, Actor, ScheduleBatch], Awaitable[T]],
    ) -> T:
        at = self._transactions.on(connection)

        async def attempt() -> T:
            batch = ScheduleBatch(wanted, await at.over_own_connection(self._contents(actor, wanted)))
            return await at.act(lambda inside: act(inside, actor, batch), jobs=batch.jobs)

        return await at.again_if_replaced(attempt)

    # ── inside a transaction ────────────────────────────────────────────────────────────────────────────────

    async def _create_all(self, connection: Connection, actor: Actor, batch: ScheduleBatch) -> dict[str, UUID]:
        """Answers with their ids by their names."""
        ids: dict[str, UUID] = {}
        firsts = await self._firsts(connection, actor, batch.requests)
        for lane, some in _pieces(self._by_lane(actor, batch.requests)):
            made, taken = await self._create(connection, actor, lane, some, batch, firsts)
            if taken:
                raise schedules_exist([request.name for request in taken])
            ids |= made
        await self._announce(connection, actor, "create_many", ids)
        return ids

    async def _put_all(self, connection: Connection, actor: Actor, batch: ScheduleBatch) -> PutReport:
        """What is new is made before anything is locked, by everybody, and both are done in one order.

        So two batches that have names in common wait for each other on one side only.
        """
        ids: dict[str, UUID] = {}
        all_differing: list[ScheduleRequest] = []
        left = batch.requests
        while left:  # once, unless somebody makes the same meanwhile
            missing, differing = await self._compared(connection, actor, left, batch)
            made, left = await self._create_missing(connection, actor, missing, batch)
            ids |= made
            all_differing += differing
        if ids:
            await self._announce(connection, actor, "put_many", ids)
        put = await self._replace_all(connection, actor, all_differing, batch)
        put[PutOutcome.CREATED] += len(ids)
        put[PutOutcome.UNCHANGED] += len(batch.requests) - put.total()
        return PutReport(**{outcome.value: put[outcome] for outcome in PutOutcome})

    async def _compared(
        self, connection: Connection, actor: Actor, wanted: Sequence[ScheduleRequest], batch: ScheduleBatch
    ) -> tuple[list[ScheduleRequest], list[ScheduleRequest]]:
        """Those that are not there, and those that are something else. Nothing is locked for that.

        Who changes one of the others before this commits has changed it after this.
        """
        missing: list[ScheduleRequest] = []
        differing: list[ScheduleRequest] = []
        for lane, some in _pieces(self._by_lane(actor, wanted)):
            names = [request.name for request in some]
            rows = await schedules.find_many(connection, lane, names, tenant_id=actor.tenant)
            present = {row["name"]: row for row in rows}
            for request in some:
                row = present.get(request.name)
                if row is None:
                    missing.append(request)
                elif not batch.is_there(request, row):
                    differing.append(request)
        return missing, differing

    async def _create_missing(
        self, connection: Connection, actor: Actor, missing: Sequence[ScheduleRequest], batch: ScheduleBatch
    ) -> tuple[dict[str, UUID], list[ScheduleRequest]]:
        """Answers with the ids of those that were made, and with those that somebody else has made meanwhile."""
        ids: dict[str, UUID] = {}
        all_taken: list[ScheduleRequest] = []
        firsts = await self._firsts(connection, actor, missing)
        for lane, some in _pieces(self._by_lane(actor, missing)):
            made, taken = await self._create(connection, actor, lane, some, batch, firsts)
            ids |= made
            all_taken += taken
        return ids, all_taken

    async def _replace_all(
        self, connection: Connection, actor: Actor, differing: Sequence[ScheduleRequest], batch: ScheduleBatch
    ) -> Counter[PutOutcome]:
        outcomes: Counter[PutOutcome] = Counter()
        for lane, some in _pieces(self._by_lane(actor, differing)):
            outcomes += await self._replacer.replace(connection, actor, lane, some, batch)
        return outcomes

    async def _create(
        self,
        connection: Connection,
        actor: Actor,
        lane: int,
        some: Sequence[ScheduleRequest],
        batch: ScheduleBatch,
        firsts: FirstInstants,
    ) -> tuple[dict[str, UUID], list[ScheduleRequest]]:
        """Make those of one lane whose names are free; answers with their ids, and with the others."""
        new = self._new(lane, some, batch, firsts)
        made = await schedules.create_many(
            connection, lane, new, TZDATA_VERSION, tenant_id=actor.tenant, actor=actor.name
        )
        ids = {each.name: each.id for each in new if each.id in made}
        if len(ids) < len(new):
            await schedules.drop_cursors(connection, lane, [each.id for each in new if each.id not in made])
        return ids, [request for request in some if request.name not in ids]

    async def _announce(self, connection: Connection, actor: Actor, action: str, ids: dict[str, UUID]) -> None:
        """Wake the schedulers; and one row of audit for all that were made, where the first few stand for the rest."""
        lanes = list({self._queries.lane(actor, name): None for name in ids})
        await schedules.audit(
            connection,
            lanes[0],
            next(iter(ids.values())),
            action,
            tenant_id=actor.tenant,
            actor=actor.name,
            detail={"count": len(ids), "names": list(ids)[:NAMED]},
        )
        notify.send(connection, map(notify.schedule, lanes))

    # ── worked out ──────────────────────────────────────────────────────────────────────────────────────────

    async def _contents(self, actor: Actor, wanted: Sequence[ScheduleRequest]) -> dict[str, Content]:
        """By their names. What many have in common is worked out once."""
        common: dict[tuple[object, ...], Content] = {}
        contents = {}
        for request in wanted:
            rules = (request.catch_up, request.overlap, request.pause_after_failures)
            kind = (request.job, id(request.schedule), id(request.options), *rules)
            content = common.get(kind)
            if content is None:
                content = common[kind] = await self._content(actor, request, wanted)
            contents[request.name] = content._replace(payload=request.payload)
        return contents

    async def _content(self, actor: Actor, request: ScheduleRequest, wanted: Sequence[ScheduleRequest]) -> Content:
        try:
            return await self._schedules.content(actor, request)
        except (InvalidInput, NotFound) as error:
            raise refused_in_batch(error, request, wanted) from error

    async def _firsts(self, connection: Connection, actor: Actor, wanted: Sequence[ScheduleRequest]) -> FirstInstants:
        """For those that are made. Nobody edits their calendars meanwhile."""
        names = {name for request in wanted for name in request.schedule.stored_calendars}
        try:
            calendars = await self._calendars.known(connection, actor, names, holds=True)
        except InvalidSchedule as error:
            raise refused_in_batch(error, _user_of(error.fields["value"], wanted), wanted) from error
        return FirstInstants(calendars, await schedules.now(connection))

    def _by_lane(self, actor: Actor, wanted: Sequence[ScheduleRequest]) -> dict[int, list[ScheduleRequest]]:
        """In one order for everybody, so that two batches with the same names wait for each other on one side only."""
        lanes: dict[int, list[ScheduleRequest]] = {}
        for request in sorted(wanted, key=lambda each: each.name):
            lanes.setdefault(self._queries.lane(actor, request.name), []).append(request)
        return dict(sorted(lanes.items()))

    def _new(
        self, lane: int, some: Sequence[ScheduleRequest], batch: ScheduleBatch, firsts: FirstInstants
    ) -> list[NewSchedule]:
        made = []
        for request, schedule_id in zip(some, new_run_ids(len(some), lane, instant(self._clock)), strict=True):
            try:
                found, first = firsts.of(request)
            except InvalidSchedule as error:
                raise refused_in_batch(error, request, batch.requests) from error
            content, at = batch.contents[request.name], (first.nominal_at, first.due_at)
            made.append(NewSchedule(schedule_id, request.name, content, *at, found.revision))
        return made


def _user_of(calendar: object, wanted: Sequence[ScheduleRequest]) -> ScheduleRequest:
    """The first that names a calendar, which stands in an error as `shortened` shows it."""
    return next(each for each in wanted if calendar in [shortened(name) for name in each.schedule.stored_calendars])


def _pieces(lanes: dict[int, list[ScheduleRequest]]) -> Iterator[tuple[int, list[ScheduleRequest]]]:
    for lane, requests in lanes.items():
        for start in range(0, len(requests), ROWS):
            yield lane, requests[start : start + ROWS]
