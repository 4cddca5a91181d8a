"""Schedules, their occurrences and their versions, as they are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

LOOKED_BACK = 1_000  # so many occurrences, to find one that succeeded
MOST_DECLARED = 10_000  # jobs have one at most, and there are no more jobs than that

BEYOND_NAMES = "~"  # comes after every name


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
