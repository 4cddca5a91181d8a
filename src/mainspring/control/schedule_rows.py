"""Rows of schedules, their ledger and their versions, as people see them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.control.schedule_requests import ScheduleRequest
from mainspring.errors import InvalidSchedule
from mainspring.model.options import options_of
from mainspring.model.payload import decode
from mainspring.model.scheduling import (
    OccurrenceOutcome,
    OccurrenceRecord,
    ScheduleState,
    ScheduleSummary,
    ScheduleVersion,
)
from mainspring.schedule.deciding import OverlapPolicy, SkipReason
from mainspring.schedule.walls import TICK
from mainspring.scheduler.batch import catch_up_from, schedule_from, schedule_if_readable
from mainspring.store.schedules import Content

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from mainspring.schedule.schedule import Schedule
    from mainspring.store.connection import Record


def content_of(row: Record) -> Content:
    return Content(
        job=row["job_id"],
        spec=row["spec"],
        codec=row["codec"],
        payload=row["payload"],
        options=msgspec.json.encode(options_document(row), order="sorted").decode(),
        tags=row["tags"],
        catch_up=row["catch_up"],
        catch_up_seconds=row["catch_up_seconds"],
        is_declared=row["is_declared"],
        calendars=row["calendars"],
        read_at=row["read_at"],
        overlap=row["overlap"],
        pause_after_failures=row["pause_after_failures"],
    )


def request_of(row: Record, name: str, job: str) -> ScheduleRequest:
    """What would have to be asked for to get what a row keeps."""
    return ScheduleRequest(
        name=name,
        job=job,
        schedule=schedule_from(row["spec"]),
        payload=row["payload"],
        options=options_of(options_document(row) | {"tags": row["tags"]}),
        catch_up=catch_up_from(row["catch_up"], row["catch_up_seconds"]),
        overlap=OverlapPolicy(row["overlap"]),
        pause_after_failures=row["pause_after_failures"],
        is_declared=row["is_declared"],
        read_at=row["read_at"],
    )


def kept(request: ScheduleRequest, content: Content, row: Record) -> tuple[ScheduleRequest, Content]:
    """What is asked for; or what is stored, if that is what the text said, counted from the now of then.

    So whoever says the same again and again does not put it off. One that is over begins anew.
    """
    said, read_at = request.said, row["read_at"]
    if said is None or read_at is None or row["state"] == ScheduleState.DONE:
        return request, content
    with suppress(InvalidSchedule):  # it may say nothing at that time
        stored = replace(request, schedule=said.at(read_at), read_at=read_at)
        if stored.spec == row["spec"]:
            return stored, content._replace(spec=stored.spec, read_at=read_at)
    return request, content


def options_document(row: Record) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.json.decode(row["options"])
    return document


def _told(row: Record) -> dict[str, str]:
    """When a schedule fires, as people read it."""
    schedule = schedule_if_readable(row["spec"])
    if schedule is None:
        return {"when": row["spec"], "words": "cannot be read by this version of Mainspring", "zone": ""}
    return {"when": schedule.text, "words": schedule.words, "zone": schedule.zone}


def summary_of(row: Record, job: str) -> ScheduleSummary:
    state = ScheduleState(row["state"])
    is_active = state is ScheduleState.ACTIVE
    return ScheduleSummary(
        id=row["id"],
        name=row["name"],
        job=job,
        version=row["version"],
        **_told(row),
        state=state,
        next_at=row["nominal_at"] if is_active else None,
        next_due_at=row["due_at"] if is_active else None,
        payload=decode(row["payload"], row["codec"]),
        options=options_document(row),
        tags=row["tags"] or [],
        catch_up=row["catch_up"],
        catch_up_window=timedelta(seconds=row["catch_up_seconds"]),
        overlap=row["overlap"],
        pause_after_failures=row["pause_after_failures"],
        is_declared=row["is_declared"],
        paused_at=row["paused_at"],
        paused_by=row["paused_by"],
        pause_reason=row["pause_reason"],
        paused_until=row["paused_until"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
    )


def version_of(row: Record, job: str) -> ScheduleVersion:
    is_past = "replaced_at" in row
    return ScheduleVersion(
        version=row["version"],
        job=job,
        **_told(row),
        payload=decode(row["payload"], row["codec"]),
        options=options_document(row),
        tags=row["tags"] or [],
        catch_up=row["catch_up"],
        catch_up_window=timedelta(seconds=row["catch_up_seconds"]),
        overlap=row["overlap"],
        pause_after_failures=row["pause_after_failures"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
        replaced_at=row["replaced_at"] if is_past else None,
        is_deleted=row["is_deleted"] if is_past else False,
    )


def record_of(row: Record) -> OccurrenceRecord:
    """An instant that became a run."""
    return OccurrenceRecord(
        nominal_at=row["nominal_at"],
        last_at=row["nominal_at"],
        outcome=OccurrenceOutcome.FIRED,
        version=row["version"],
        decided_at=row["fired_at"],
        run_id=row["run_id"],
        due_at=row["due_at"],
        late=max(timedelta(0), row["fired_at"] - row["due_at"]),
    )


class SkippedInstants(NamedTuple):
    """Instants in a row that became no run of their own, and the row of the ledger that says so."""

    row: Record
    first_at: datetime
    last_at: datetime


def told_once(
    row: Record, made_up: Sequence[datetime], before: datetime, schedule: Schedule | None, name: str
) -> list[SkippedInstants]:
    """What a row of the ledger says was skipped, without the instants that a backfill has made up for (newest first).

    The row stays as it is, since that is what was decided then. Only what is before the given instant is told. Without
    a schedule (none is needed if nothing was made up for, and some can no longer be read) the row is told as it is.
    """
    if schedule is None:
        return [SkippedInstants(row, row["first_at"], row["last_at"])]
    told: list[SkippedInstants] = []
    end = min(before, row["last_at"] + TICK)
    for at in (*(each for each in made_up if schedule.is_due(each, job=name)), row["first_at"] - TICK):
        first, last = schedule.next_after(at, job=name), schedule.prev_before(end, job=name)
        if first is not None and last is not None and first.nominal_at <= last.nominal_at:
            told.append(SkippedInstants(row, first.nominal_at, last.nominal_at))
        end = at
    return told


def specs_of(versions: Iterable[Record]) -> dict[UUID, dict[int, str]]:
    """When schedules were due at each of their versions."""
    specs: dict[UUID, dict[int, str]] = {}
    for row in versions:
        specs.setdefault(row["schedule_id" if "schedule_id" in row else "id"], {})[row["version"]] = row["spec"]
    return specs


def skip_record_of(skipped: SkippedInstants) -> OccurrenceRecord:
    """Instants that became no run of their own."""
    row = skipped.row
    is_collapsed = row["reason"] == SkipReason.COLLAPSED
    return OccurrenceRecord(
        nominal_at=skipped.first_at,
        last_at=skipped.last_at,
        outcome=OccurrenceOutcome.COLLAPSED if is_collapsed else OccurrenceOutcome.SKIPPED,
        version=row["version"],
        decided_at=row["decided_at"],
        run_id=row["run_id"],
        reason=row["reason"],
    )
