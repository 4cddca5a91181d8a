"""What schedulers ask of the database: which cursors are due or to be computed again, and the one act that fires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.model.run import NewRun
    from mainspring.store.connection import Connection, Record

DUE = load("schedules/due")
FIRE = load("schedules/fire")


class Skip(NamedTuple):
    """Instants of one schedule that become no run of their own."""

    first_at: datetime
    last_at: datetime
    reason: str
    run_id: UUID | None  # into which they are collapsed


class Firing(NamedTuple):
    """The decision about one schedule, as the database takes it. What is None does not happen."""

    schedule_id: UUID
    revision: int
    expected: datetime  # where the cursor stood
    fired: datetime | None
    due: datetime | None
    previous: datetime | None  # the instant before the one that fires
    run_id: UUID | None
    template: int | None  # which of the templates the run follows
    following: datetime | None  # None: the schedule is over
    following_due: datetime | None


async def due(connection: Connection, lane: int, horizon: float, count: int, passed_over: int = 0) -> list[Record]:
    """Schedules whose next instant is due within so many seconds: those that are due first, after so many."""
    return await DUE.fetch(connection, lane=lane, horizon=horizon, count=count, passed_over=passed_over)


async def next_due(connection: Connection, lanes: Sequence[int]) -> list[Record]:
    return await load("schedules/next_due").fetch(connection, lanes=lanes)


def due_in(row: Record, horizon: float = 0.0) -> float | None:
    """In how many seconds there is something to fire in the lane of a row of `next_due`, as far ahead as this; or None.

    What is decided at its instant is not fired ahead.
    """
    staged, at_instant = row["seconds"], row["instant_seconds"]
    ahead = None if staged is None else staged - horizon
    return min((each for each in (ahead, at_instant) if each is not None), default=None)


async def announced(connection: Connection, lane: int, marks: Sequence[float], most: int) -> dict[float, int]:
    """How many schedules of a lane are due within so many seconds, for each mark; at most so many are counted."""
    rows = await load("schedules/announced").fetch(connection, lane=lane, marks=marks, most=most)
    return {row["seconds"]: row["schedules"] for row in rows}


async def computed_by(connection: Connection, lanes: Sequence[int]) -> list[Record]:
    """By which calendars and time zones the cursors of these lanes were computed, at least."""
    return await load("schedules/computed_by").fetch(connection, lanes=lanes)


async def note_calendars(connection: Connection, lane: int, revision: int) -> None:
    """All cursors of a lane are computed by the calendars of this revision, or newer ones."""
    await load("schedules/note_calendars").execute(connection, lane=lane, revision=revision)


async def of_older_tzdata(connection: Connection, lane: int, tzdata: str, past: UUID, count: int) -> list[Record]:
    """Schedules whose cursors an older release of the time zone database computed, in the order of their ids."""
    return await load("schedules/of_older_tzdata").fetch(connection, lane=lane, tzdata=tzdata, past=past, count=count)


async def note_tzdata(connection: Connection, lane: int, tzdata: str) -> None:
    """All cursors of a lane are as this release has them, or a newer one."""
    await load("schedules/note_tzdata").execute(connection, lane=lane, tzdata=tzdata)


async def known_by_workers(connection: Connection) -> tuple[int, int]:
    """The newest migration that the programs of all live workers know, and that all of the last day knew."""
    row = await load("schedules/known_by_workers").fetchrow(connection)
    assert row is not None
    return row["live"], row["lately"]


async def fire(
    connection: Connection,
    lane: int,
    firings: Sequence[Firing],
    skips: Sequence[tuple[UUID, Skip]],
    templates: Sequence[NewRun],
    tzdata: str,
    *,
    packs: bool,
) -> list[Record]:
    """Carry out decisions about schedules of one lane; answers with the lines that got runs, and how many.

    Without a line: how many were skipped, since an earlier run had not ended.

    What does not fit any more, since somebody else decided or changed the schedule, is passed over without a word.
    `packs`: all workers know the short form of which occurrence a run is for.
    """
    columns = zip(*firings, strict=True)
    names = ("schedules", "revisions", "expected", "fired", "due", "previous", "runs", "chosen")
    values: dict[str, Any] = dict(zip((*names, "following", "following_due"), columns, strict=True))
    return await FIRE.fetch(
        connection,
        lane=lane,
        templates=msgspec.json.encode([{**template_document(each), "packs": packs} for each in templates]).decode(),
        skips=msgspec.json.encode([{"schedule_id": schedule, **skip._asdict()} for schedule, skip in skips]).decode(),
        tzdata=tzdata,
        **values,
    )


async def asked_to_stop(connection: Connection, lane: int) -> list[UUID]:
    """The workers that were asked to stop runs of a lane: a hint lets them look at once."""
    return [row["worker_id"] for row in await load("leases/cancelling").fetch(connection, lane=lane)]


def template_document(run: NewRun) -> dict[str, Any]:
    return {
        "job_version": run.job_version,
        "line_id": run.line_id,
        "priority": run.priority,
        "max_age": run.max_age,
        "start_within": run.start_within,
        "overrides": None if run.overrides is None else msgspec.Raw(run.overrides.encode()),
        "headers": None if run.headers is None else msgspec.Raw(run.headers.encode()),
    }


async def failing(connection: Connection, lanes: Sequence[int]) -> list[Record]:
    """Schedules of some lanes that may have failed too often."""
    return await load("schedules/failing").fetch(connection, lanes=lanes)


async def pause_failing(connection: Connection, lane: int, schedule_id: UUID, *, actor: str) -> bool:
    """Pause a schedule if so many of its runs in a row ended without success; answers whether it was paused."""
    paused = await load("schedules/pause_failing").fetchval(connection, lane=lane, schedule=schedule_id, actor=actor)
    return bool(paused)


async def set_aside(
    connection: Connection, lane: int, schedule_id: UUID, revision: int, *, actor: str, reason: str
) -> None:
    """Pause a schedule that cannot be decided."""
    await load("schedules/set_aside").execute(
        connection, lane=lane, schedule=schedule_id, revision=revision, actor=actor, reason=reason
    )
