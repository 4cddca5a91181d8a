"""Lets time pass: schedules fire when the clock comes by, and their runs are executed, however far it goes.

The clock moves from one due instant to the next, so that each is on time, as with a scheduler that is always there.
What fires, and how, is decided by the parts of a scheduler, on the real database.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.app.binding import blocking_call
from mainspring.clock import SystemClock, instant
from mainspring.errors import InvalidInput, NotIdle
from mainspring.model.job import checked_at
from mainspring.model.payload import quoted
from mainspring.scheduler.firing import LaneFirer
from mainspring.scheduler.recomputing import recompute
from mainspring.scheduler.templates import Templates
from mainspring.store import lists, schedule_firing, schedule_reading, schedules
from mainspring.testing.idle import frozen_clock_of, in_time, working

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mainspring.app.handle import Handle
    from mainspring.app.mainspring import Mainspring
    from mainspring.model.lifecycle import State
    from mainspring.store.connection import Connection, Record
    from mainspring.testing.frozen import FrozenClock
    from mainspring.testing.idle import WaitingWork


@dataclass(frozen=True, slots=True, kw_only=True)
class FiredOccurrence:
    """An instant of a schedule that became a run."""

    schedule: str
    nominal_at: datetime
    due_at: datetime  # later than the nominal instant if the schedule has a spread
    run: Handle[Any]
    state: State  # of the run, when the journey was over


async def travel(
    app: Mainspring,
    by: timedelta | float | None = None,
    *,
    to: datetime | None = None,
    start: datetime | None = None,
    run: bool = True,
    queues: Iterable[str] | None = None,
    timeout: float = 30.0,
) -> list[FiredOccurrence]:
    """Let time pass, by a span (a number is seconds) or to an instant; answers with the occurrences that fired.

    With `start`, it is that instant first. The schedules that the code declares take effect, as when a worker starts.
    Then the application's FrozenClock moves to each instant at which a schedule, a retry or a delayed run is due:
    schedules fire, and runs are executed as `run_until_idle` does it. `run=False` fires only. It needs no scheduler and
    no worker, and leaves none behind.
    """
    clock = frozen_clock_of(app)
    if start is not None:
        await clock.set(start)
    began, until = clock.at, _destination(clock, by, to)
    await app.schedules.apply()
    store = (await app.services()).store
    async with AsyncExitStack() as ending:
        connection = await store.database.connect("travel")
        ending.push_async_callback(connection.close)
        _refuse_other_clock(clock, await schedules.now(connection))
        before = {row["run_id"] for row in await _fired(app, connection, began)}
        await ending.enter_async_context(clock.travelling())
        work = await ending.enter_async_context(working(app, queues)) if run else None
        journey = _Journey(clock, connection, store.lanes, until, work)
        async with in_time(timeout, journey.not_there):
            await journey.go()
        rows = [row for row in await _fired(app, connection, began) if row["run_id"] not in before]
        return await _occurrences(app, connection, rows)


travel_sync = blocking_call("travel_sync", travel)


def _destination(clock: FrozenClock, by: timedelta | float | None, to: datetime | None) -> datetime:
    now = instant(clock)
    if (by is None) == (to is None):
        raise _invalid("to", to, "must be given, or else a span, and not both: travel(app, timedelta(days=365))")
    if by is not None:
        until = now + (by if isinstance(by, timedelta) else timedelta(seconds=by))
    else:
        until = checked_at(to, "to") or now
    if until < now:
        raise _invalid("to", until, f"must not be before the clock's time, {now}: clock.set(…) goes back")
    return until


def _invalid(field: str, value: object, rule: str) -> InvalidInput:
    return InvalidInput(
        f"{field} is {quoted(value)}; it {rule}.",
        code="invalid-journey",
        field=field,
        value=quoted(value),
        rule=rule,
    )


def _refuse_other_clock(clock: FrozenClock, now: datetime) -> None:
    if now != clock.at:
        raise InvalidInput(
            f"It is {clock.at} for the application and {now} in its database.",
            code="clock-not-frozen",
            hint="Freeze the database, too: await clock.freeze(app).",
        )


class _Stop(NamedTuple):
    """Where the clock stands next, and the lanes whose schedules are due there."""

    at: datetime
    lanes: Sequence[int]


class _Journey:
    """The way of a clock, from one due instant to the next."""

    def __init__(
        self, clock: FrozenClock, connection: Connection, lanes: int, until: datetime, work: WaitingWork | None
    ) -> None:
        self._clock = clock
        self._connection = connection
        self._lanes = range(lanes)
        self._until = until
        self._work = work
        # What jobs look like is looked up again after real seconds, and not at every stop.
        self._firer = LaneFirer(clock=clock, templates=Templates(SystemClock()))

    def not_there(self, timeout: float) -> NotIdle:
        running = 0 if self._work is None else self._work.running
        return NotIdle(
            f"After {timeout:g} s it is {self._clock.at}, on the way to {self._until}; {running} run(s) are running.",
            hint="Travel less far, give it more time (timeout=120), or fire without executing runs: run=False.",
        )

    async def go(self) -> None:
        await recompute(self._connection, self._lanes)
        if self._work is not None:
            self._work.when_stuck = self._go_on_without_handlers
            await self._work.until_idle()
        while (stop := await self._next_stop()) is not None:
            await self._stop_at(stop)
            if self._work is not None:
                await self._work.until_idle()
        await self._move_to(self._until)

    async def _next_stop(self) -> _Stop | None:
        """Where a schedule is due, or a run."""
        firing, run_due_at = await self._next_firing(), None if self._work is None else self._work.next_due_at
        if run_due_at is None or run_due_at > self._until or (firing is not None and firing.at <= run_due_at):
            return firing
        return _Stop(run_due_at, ())

    async def _next_firing(self) -> _Stop | None:
        rows = await schedule_firing.next_due(self._connection, self._lanes)
        instants = {
            row["lane"]: row["now"] + timedelta(seconds=seconds)
            for row in rows
            if (seconds := schedule_firing.due_in(row)) is not None
        }
        at = min(instants.values(), default=None)
        if at is None or at > self._until:
            return None
        return _Stop(at, [lane for lane, due_at in instants.items() if due_at <= max(at, self._clock.at)])

    async def _stop_at(self, stop: _Stop) -> None:
        await self._move_to(stop.at)
        for lane in stop.lanes:
            await self._firer.fire(self._connection, lane, 0.0, packs=True)
        if self._work is not None:
            await self._work.look_into(stop.lanes)

    async def _go_on_without_handlers(self) -> None:
        """Some wait, and nothing finishes. If the time of one will be up, let it pass, and fire what is due before."""
        limit_at = None if self._work is None else self._work.limit_at
        if limit_at is not None and limit_at <= self._until:
            firing = await self._next_firing()
            await self._stop_at(firing if firing is not None and firing.at < limit_at else _Stop(limit_at, ()))

    async def _move_to(self, at: datetime) -> None:
        if at > self._clock.at:
            await (self._clock.set(at) if self._work is None else self._work.move_to(at))


async def _fired(app: Mainspring, connection: Connection, since: datetime) -> list[Record]:
    return await schedule_reading.fired_since(connection, since, tenant_id=app.actor.tenant)


async def _occurrences(app: Mainspring, connection: Connection, rows: Sequence[Record]) -> list[FiredOccurrence]:
    states = await lists.states_of(connection, [row["run_id"] for row in rows], tenant_id=app.actor.tenant)
    return [
        FiredOccurrence(
            schedule=row["name"],
            nominal_at=row["nominal_at"],
            due_at=row["due_at"],
            run=app.runs.handle(row["run_id"]),
            state=states[row["run_id"]],
        )
        for row in rows
    ]
