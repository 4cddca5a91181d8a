"""Runs that give way to others where a backlog is full, by its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.model.backlog import WhenFull
from mainspring.store import notify
from mainspring.store.backlog_gates import leave
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from mainspring.store.backlog_gates import Standing
    from mainspring.store.connection import Connection

SPARE = 20  # candidates more than are to be dropped: somebody may have locked some


class _Candidate(NamedTuple):
    place: int
    run_id: UUID
    lane: int


async def drop(connection: Connection, standing: Standing, count: int, instead: Sequence[UUID], lanes: int) -> int:
    """Cancel so many runs that wait, as the policy says; answers how many: some may be locked, or claimed just now."""
    candidates = await _candidates(connection, standing, count + SPARE, lanes)
    dropped = 0
    while candidates and dropped < count:
        some, candidates = candidates[: count - dropped], candidates[count - dropped :]
        for lane in sorted({each.lane for each in some}):
            own = [each for each in some if each.lane == lane]
            dropped += await _drop_in_lane(connection, standing, lane, own, instead)
    if dropped:
        await leave(connection, standing.home, {standing.gate: dropped}, are_checked=False)
        notify.send(connection, [notify.dependency()])
    return dropped


async def _candidates(connection: Connection, standing: Standing, count: int, lanes: int) -> list[_Candidate]:
    is_newest = standing.when_full is WhenFull.REPLACE
    statement = load("backlog/newest") if is_newest else load("backlog/oldest")
    found = [
        _Candidate(row["place"], row["run_id"], lane)
        for lane in connection.reach.lanes(range(lanes))
        for row in await statement.fetch(connection, lane=lane, gate=standing.gate, count=count)
    ]
    return sorted(found, reverse=is_newest)[:count]


async def _drop_in_lane(
    connection: Connection, standing: Standing, lane: int, some: Sequence[_Candidate], instead: Sequence[UUID]
) -> int:
    notice = standing.notice
    said: dict[str, Any] = {"backlog": standing.subject, "value": notice.value, "most": standing.most}
    if instead:
        said["instead"] = str(instead[0])
    rows = await load("backlog/drop").fetch(
        connection,
        lane=lane,
        runs=[each.run_id for each in some],
        tenant=standing.tenant_id,
        actor=f"backlog of {standing.subject}",
        reason=f"The backlog of {notice.backlog} has at most {notice.most:,} runs; {_who_came(instead)} instead.",
        detail=msgspec.json.encode(said).decode(),
    )
    gone = {row["id"] for row in rows}
    places = [each.place for each in some if each.run_id in gone]
    await load("backlog/forget").execute(connection, lane=lane, gate=standing.gate, places=places, runs=sorted(gone))
    return len(gone)


def _who_came(instead: Sequence[UUID]) -> str:
    match len(instead):
        case 0:
            return "others were accepted"
        case 1:
            return f"run {instead[0]} was accepted"
        case count:
            return f"run {instead[0]} and {count - 1:,} more were accepted"
