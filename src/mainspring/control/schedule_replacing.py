"""Replaces many schedules of one lane: by sets where nothing is left to decide of what was there, else one by one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mainspring.control.schedule_acts import audit_of
from mainspring.control.schedule_errors import refused_in_batch
from mainspring.control.schedule_rows import content_of, kept
from mainspring.errors import InvalidSchedule
from mainspring.model.scheduling import PutOutcome
from mainspring.schedule.zones import TZDATA_VERSION
from mainspring.scheduler.changing_many import SettledSchedule, locked_and_settled
from mainspring.store import notify, schedule_replacing
from mainspring.store.schedule_replacing import Replacement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring.control.schedule_acts import ScheduleActs
    from mainspring.control.schedule_batch import ScheduleBatch
    from mainspring.control.schedule_requests import ScheduleRequest
    from mainspring.model.actor import Actor
    from mainspring.store.connection import Connection
    from mainspring.store.schedules import Content


class Replaced(NamedTuple):
    """What a locked schedule is to become."""

    schedule: SettledSchedule
    request: ScheduleRequest
    content: Content


class ScheduleReplacer:
    """Makes schedules what is asked for, inside an open transaction."""

    def __init__(self, *, acts: ScheduleActs) -> None:
        self._acts = acts

    async def replace(
        self, connection: Connection, actor: Actor, lane: int, some: Sequence[ScheduleRequest], batch: ScheduleBatch
    ) -> Counter[PutOutcome]:
        """All are locked first, in the order of their names."""
        names = [request.name for request in some]
        settled = await locked_and_settled(connection, lane, names, tenant_id=actor.tenant)
        found = {each.row["name"]: each for each in settled}
        is_plain = {each.name: each.name in found and not each.schedule.stored_calendars for each in some}
        plain = [_replaced(found[each.name], each, batch) for each in some if is_plain[each.name]]
        outcomes = await self._replace_plain(connection, actor, lane, plain, batch)
        for request in some:
            if not is_plain[request.name]:
                outcomes[await self._replace_one(connection, actor, request, batch)] += 1
        return outcomes

    async def _replace_one(
        self, connection: Connection, actor: Actor, request: ScheduleRequest, batch: ScheduleBatch
    ) -> PutOutcome:
        """What is overdue is decided, and what is paused stays so."""
        try:
            return await self._acts.put_content(connection, actor, request, batch.contents[request.name])
        except InvalidSchedule as error:
            raise refused_in_batch(error, request, batch.requests) from error

    async def _replace_plain(
        self, connection: Connection, actor: Actor, lane: int, plain: Sequence[Replaced], batch: ScheduleBatch
    ) -> Counter[PutOutcome]:
        changed = [each for each in plain if not each.content.is_same(content_of(each.schedule.row))]
        if changed:
            made = [_replacement(each, batch) for each in changed]
            tenant_id, name = actor.tenant, actor.name
            await schedule_replacing.replace_many(
                connection, lane, made, TZDATA_VERSION, tenant_id=tenant_id, actor=name
            )
            details = {each.schedule.id: audit_of(each.request) for each in changed}
            await schedule_replacing.audit_many(connection, lane, "replace", details, tenant_id=tenant_id, actor=name)
            notify.send(connection, [notify.schedule(lane)])
        return Counter({PutOutcome.CHANGED: len(changed), PutOutcome.UNCHANGED: len(plain) - len(changed)})


def _replaced(schedule: SettledSchedule, request: ScheduleRequest, batch: ScheduleBatch) -> Replaced:
    return Replaced(schedule, *kept(request, batch.contents[request.name], schedule.row))


def _replacement(replaced: Replaced, batch: ScheduleBatch) -> Replacement:
    schedule, request, content = replaced
    try:
        request.first_after(schedule.now)
    except InvalidSchedule as error:
        raise refused_in_batch(error, request, batch.requests) from error
    first = schedule.first_of(request.schedule)
    assert first is not None, "one that is over was refused"
    return Replacement(schedule.id, content, first.nominal_at, first.due_at)
