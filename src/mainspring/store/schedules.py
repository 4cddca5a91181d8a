"""Schedules in the database: finding, changing, and the one act that fires them. All of a schedule is in one lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.model.run import NewRun
    from mainspring.schedule.deciding import Skipped
    from mainspring.store.connection import Connection, Record

LOOKED_BACK = 1_000  # so many occurrences, to find one that succeeded
MOST_DECLARED = 10_000  # jobs have one at most, and there are no more jobs than that

BEYOND_NAMES = "~"  # comes after every name

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


async def due(connection: Connection, lane: int, horizon: float, count: int) -> list[Record]:
    """Schedules whose next instant is due within so many seconds: those that are due first."""
    return await DUE.fetch(connection, lane=lane, horizon=horizon, count=count)


async def next_due(connection: Connection, lanes: Sequence[int]) -> list[Record]:
    return await load("schedules/next_due").fetch(connection, lanes=lanes)


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


async def may_stage(connection: Connection) -> bool:
    return bool(await load("schedules/may_stage").fetchval(connection))


async def fire(
    connection: Connection,
    lane: int,
    firings: Sequence[Firing],
    skips: Sequence[tuple[UUID, Skip]],
    templates: Sequence[NewRun],
    tzdata: str,
) -> list[Record]:
    """Carry out decisions about schedules of one lane; answers with the lines that got runs.

    What does not fit any more, since somebody else decided or changed the schedule, is passed over without a word.
    """
    columns = zip(*firings, strict=True)
    names = ("schedules", "revisions", "expected", "fired", "due", "previous", "runs", "chosen")
    values: dict[str, Any] = dict(zip((*names, "following", "following_due"), columns, strict=True))
    return await FIRE.fetch(
        connection,
        lane=lane,
        templates=msgspec.json.encode([template_document(each) for each in templates]).decode(),
        skips=msgspec.json.encode([{"schedule_id": schedule, **skip._asdict()} for schedule, skip in skips]).decode(),
        tzdata=tzdata,
        **values,
    )


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


async def set_aside(
    connection: Connection, lane: int, schedule_id: UUID, revision: int, *, actor: str, reason: str
) -> None:
    """Pause a schedule that cannot be decided."""
    await load("schedules/set_aside").execute(
        connection, lane=lane, schedule=schedule_id, revision=revision, actor=actor, reason=reason
    )


# ── one schedule ────────────────────────────────────────────────────────────────────────────────────────────────


async def find(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    return await load("schedules/find").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def lock(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    """Lock a schedule for whoever changes it; its cursor is locked after it, everywhere."""
    return await load("schedules/lock").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def lock_if_free(connection: Connection, lane: int, name: str, *, tenant_id: int) -> Record | None:
    """The same, unless somebody else has locked it."""
    return await load("schedules/lock_if_free").fetchrow(connection, lane=lane, name=name, tenant=tenant_id)


async def lock_cursor(connection: Connection, lane: int, schedule_id: UUID) -> Record | None:
    return await load("schedules/lock_cursor").fetchrow(connection, lane=lane, schedule=schedule_id)


async def withdraw(connection: Connection, lane: int, schedule_id: UUID, since: datetime) -> int:
    """Take back what is staged; the cursor must be locked. `since`: no instant before is due only now."""
    return int(await load("schedules/withdraw").fetchval(connection, lane=lane, schedule=schedule_id, since=since))


async def set_cursor(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    nominal_at: datetime,
    due_at: datetime | None,
    tzdata: str,
    calendars_revision: int | None = None,
) -> None:
    """Which instant is next, and by what that was computed: `calendars_revision` if stored calendars are used."""
    await load("schedules/set_cursor").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        nominal_at=nominal_at,
        due_at=due_at,
        tzdata=tzdata,
        calendars_revision=calendars_revision,
    )


async def last_decided(connection: Connection, lane: int, schedule_id: UUID) -> datetime | None:
    """The last instant of a schedule that fired or was skipped."""
    at: datetime | None = await load("schedules/last_decided").fetchval(connection, lane=lane, schedule=schedule_id)
    return at


async def drop_cursor(connection: Connection, lane: int, schedule_id: UUID) -> None:
    await load("schedules/drop_cursor").execute(connection, lane=lane, schedule=schedule_id)


async def now(connection: Connection) -> datetime:
    """The database's clock; in a transaction, when that began."""
    at: datetime = await load("schedules/now").fetchval(connection)
    return at


async def skip(connection: Connection, lane: int, schedule_id: UUID, skipped: Skipped, *, tenant_id: int) -> None:
    await load("schedules/skip").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        tenant=tenant_id,
        first_at=skipped.first_at,
        last_at=skipped.last_at,
        reason=skipped.reason.value,
    )


async def pause(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    *,
    tenant_id: int,
    actor: str,
    reason: str,
    until: datetime | None,
) -> None:
    await load("schedules/pause").execute(
        connection, lane=lane, schedule=schedule_id, tenant=tenant_id, actor=actor, reason=reason, until=until
    )


async def resume(connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int, state: str) -> None:
    await load("schedules/resume").execute(connection, lane=lane, schedule=schedule_id, tenant=tenant_id, state=state)


async def keep_version(
    connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int, is_deleted: bool = False
) -> None:
    await load("schedules/keep_version").execute(
        connection, lane=lane, schedule=schedule_id, tenant=tenant_id, is_deleted=is_deleted
    )


async def delete(connection: Connection, lane: int, schedule_id: UUID, *, tenant_id: int) -> None:
    await load("schedules/delete").execute(connection, lane=lane, schedule=schedule_id, tenant=tenant_id)


# ── making and replacing ────────────────────────────────────────────────────────────────────────────────────────


class Content(NamedTuple):
    """What a schedule is, as a row keeps it: what an edit replaces."""

    job: int
    spec: str
    codec: int
    payload: bytes
    options: str
    tags: list[str] | None
    catch_up: str
    catch_up_seconds: float
    is_declared: bool
    calendars: list[str] | None  # the stored ones that it uses


async def create(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    name: str,
    content: Content,
    *,
    state: str,
    tenant_id: int,
    actor: str,
) -> bool:
    """Make a schedule; answers whether its name was free."""
    made = await load("schedules/create").fetchval(
        connection,
        lane=lane,
        id=schedule_id,
        tenant=tenant_id,
        name=name,
        state=state,
        actor=actor,
        **content._asdict(),
    )
    return made is not None


class NewSchedule(NamedTuple):
    """One of many that are made at once."""

    id: UUID
    name: str
    content: Content
    nominal_at: datetime
    due_at: datetime
    calendars_revision: int | None


async def create_many(
    connection: Connection, lane: int, made: Sequence[NewSchedule], tzdata: str, *, tenant_id: int, actor: str
) -> set[UUID]:
    """Make schedules of one lane; answers with those whose names were free. If some were not, roll back."""
    contents = [each.content for each in made]
    rows = await load("schedules/create_many").fetch(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        tzdata=tzdata,
        ids=[each.id for each in made],
        names=[each.name for each in made],
        jobs=[each.job for each in contents],
        specs=[each.spec for each in contents],
        codecs=[each.codec for each in contents],
        payloads=[each.payload for each in contents],
        options=[each.options for each in contents],
        tags=[_as_json(each.tags) for each in contents],
        catch_ups=[each.catch_up for each in contents],
        catch_up_seconds=[each.catch_up_seconds for each in contents],
        nominal_at=[each.nominal_at for each in made],
        due_at=[each.due_at for each in made],
        calendars=[_as_json(each.calendars) for each in contents],
        calendars_revision=[each.calendars_revision for each in made],
    )
    return {row["id"] for row in rows}


def _as_json(words: list[str] | None) -> str | None:
    """An array in an array: those of PostgreSQL are all of one length."""
    return None if words is None else msgspec.json.encode(words).decode()


async def replace(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    content: Content,
    *,
    state: str,
    tenant_id: int,
    actor: str,
) -> None:
    """Make a locked schedule something else."""
    await load("schedules/replace").execute(
        connection,
        lane=lane,
        schedule=schedule_id,
        tenant=tenant_id,
        state=state,
        actor=actor,
        **content._asdict(),
    )


async def audit(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    action: str,
    *,
    tenant_id: int,
    actor: str,
    detail: dict[str, Any],
) -> None:
    await load("schedules/audit").execute(
        connection,
        lane=lane,
        tenant=tenant_id,
        actor=actor,
        action=f"schedule.{action}",
        subject=str(schedule_id),
        detail=msgspec.json.encode(detail).decode(),
    )


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────


class ScheduleFilter(NamedTuple):
    """Which schedules a list shows: those of a tenant, and of these only what else is given."""

    tenant: int
    prefix: str = ""
    job_id: int | None = None
    states: Sequence[str] | None = None
    tags: Sequence[str] | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether a list by name may have to read many rows to find few: no index knows tags and states."""
        return self.states is not None or self.tags is not None

    @property
    def is_everything(self) -> bool:
        return not self.is_sparse and not self.prefix and self.job_id is None


async def listed(
    connection: Connection, lanes: int, wanted: ScheduleFilter, *, after: str = "", until: str | None = None, count: int
) -> list[Record]:
    """Schedules in the order of their names."""
    values: dict[str, Any] = {"states": wanted.states, "tags": wanted.tags, "until": until or BEYOND_NAMES}
    statement = load("schedules/list") if wanted.job_id is None else load("schedules/list_of_job")
    return await statement.fetch(connection, **values, **_names(lanes, wanted, after), count=count)


async def scan_end(connection: Connection, lanes: int, wanted: ScheduleFilter, *, after: str, scan: int) -> str | None:
    """Up to which name a look may go that reads so many rows of each lane; None if that is all."""
    statement = load("schedules/scan_end") if wanted.job_id is None else load("schedules/scan_end_of_job")
    end: str | None = await statement.fetchval(connection, **_names(lanes, wanted, after), scan=scan)
    return end


def _names(lanes: int, wanted: ScheduleFilter, after: str) -> dict[str, Any]:
    values = {"lanes": list(range(lanes)), "tenant": wanted.tenant, "after": after, "prefix": wanted.prefix}
    return values if wanted.job_id is None else values | {"job": wanted.job_id}


async def listed_due(
    connection: Connection,
    lanes: int,
    wanted: ScheduleFilter,
    *,
    before: datetime,
    since: tuple[datetime, UUID],
    count: int,
) -> list[Record]:
    """The next so many cursors in the order in which they are due; those of other schedules have no id."""
    since_at, since_id = since
    return await load("schedules/list_due").fetch(
        connection,
        lanes=list(range(lanes)),
        tenant=wanted.tenant,
        prefix=wanted.prefix,
        job=wanted.job_id,
        states=wanted.states,
        tags=wanted.tags,
        before=before,
        since=since_at,
        since_id=since_id,
        count=count,
    )


async def extent(connection: Connection, lanes: int, bound: int, *, tenant_id: int) -> tuple[int, int]:
    """How many schedules a tenant has, counted up to a bound; and how many pages those of all tenants fill."""
    row = await load("schedules/extent").fetchrow(connection, lanes=list(range(lanes)), bound=bound, tenant=tenant_id)
    assert row is not None
    return row["schedules"], row["pages"]


async def specs(connection: Connection, lanes: int, bound: int, *, tenant_id: int) -> list[Record]:
    """What active schedules say, and how many say the same."""
    return await load("schedules/specs").fetch(connection, lanes=list(range(lanes)), bound=bound, tenant=tenant_id)


async def sample_specs(connection: Connection, share: float, *, tenant_id: int) -> list[Record]:
    """The same from a share of all schedules."""
    return await load("schedules/sample_specs").fetch(connection, percent=100 * share, tenant=tenant_id)


async def declared(connection: Connection, lanes: int, *, tenant_id: int) -> list[Record]:
    """The schedules that are declared in code."""
    return await load("schedules/declared").fetch(
        connection, lanes=list(range(lanes)), tenant=tenant_id, count=MOST_DECLARED
    )


async def occurrences(
    connection: Connection,
    lane: int,
    schedule_id: UUID,
    before: datetime,
    since: datetime,
    count: int,
    *,
    late_by: timedelta | None = None,
) -> list[Record]:
    """Instants that became runs, newest first; or only those that did so later than that."""
    return await load("schedules/occurrences").fetch(
        connection, lane=lane, schedule=schedule_id, before=before, since=since, count=count, late_by=late_by
    )


async def previous_success(
    connection: Connection, lane: int, name: str, before: datetime, *, tenant_id: int
) -> datetime | None:
    """The latest instant of a schedule, before another one, whose run succeeded."""
    found: datetime | None = await load("schedules/previous_success").fetchval(
        connection, lane=lane, name=name, before=before, count=LOOKED_BACK, tenant=tenant_id
    )
    return found


async def fired_since(connection: Connection, since: datetime, *, tenant_id: int) -> list[Record]:
    """What fired at an instant or later, in the order of firing. It reads all of the ledger: for tests."""
    return await load("schedules/fired_since").fetch(connection, since=since, tenant=tenant_id)


async def skipped(
    connection: Connection, lane: int, schedule_id: UUID, before: datetime, since: datetime, count: int
) -> list[Record]:
    """Instants that became no run of their own, newest first."""
    return await load("schedules/skipped").fetch(
        connection, lane=lane, schedule=schedule_id, before=before, since=since, count=count
    )


async def versions(connection: Connection, lane: int, name: str, *, tenant_id: int, count: int) -> list[Record]:
    """What schedules of this name were before, newest first."""
    return await load("schedules/versions").fetch(connection, lane=lane, name=name, tenant=tenant_id, count=count)


async def find_version(
    connection: Connection, lane: int, schedule_id: UUID, version: int, *, tenant_id: int
) -> Record | None:
    """What a schedule was at an older version."""
    return await load("schedules/find_version").fetchrow(
        connection, lane=lane, schedule=schedule_id, version=version, tenant=tenant_id
    )
