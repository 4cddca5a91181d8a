"""Resolving who waits for whom: telling children that their parents have ended.

The transaction that ends a run notes that as *news* for whoever waits for it (`tell_children`). Resolving comes after
it, in a transaction of its own: it locks the lane of those that have ended, reads the news, and releases the children
that wait for nothing more, or cancels those that cannot get what they wait for. What it has told is noted in the same
transaction; so news stay until somebody has acted on them, and whoever acts sees all that was committed before. Two
that act on one child at once find it in one place: the second finds nothing. A hint after COMMIT makes it quick, and
the keeper looks now and then (`keeper/resolver.py`).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.model.dependency import Condition, Met, Otherwise, broken_error, filled_in, met
from mainspring.model.ids import by_lane, lane_of
from mainspring.model.lifecycle import State
from mainspring.model.payload import MAX_PAYLOAD_BYTES
from mainspring.store import notify
from mainspring.store.connection import transaction
from mainspring.store.history import recorded_since
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from mainspring.model.dependency import Path
    from mainspring.store.connection import Connection, Record
    from mainspring.store.statements import Statement

RESULT_SIZES = load("dependencies/result_sizes")
RESULTS = load("dependencies/results")
MOST_NEWS = 1_000  # per transaction: it locks a lane
MOST_BYTES = 8_000_000  # of results, in one transaction

TOO_LARGE = {
    "code": "inputs-do-not-fit",
    "message": "With the results of the runs that it waited for, its arguments are too large, or not what they were.",
}
RESULT_GONE = {
    "code": "result-gone",
    "message": "A run whose result is one of its arguments has succeeded, and history has forgotten that result.",
}


class News(NamedTuple):
    """A run has ended that another one waits for."""

    parent_id: UUID
    child_id: UUID
    lanes: Sequence[int]
    condition: Condition
    state: State | None  # None: it is not over, for example since it was requeued
    met: Met


class Resolved(NamedTuple):
    """What was released, and where to look next."""

    wake_ups: list[notify.WakeUp]
    gates: set[str]  # at which released runs wait
    lanes: set[int]  # in which there may be more news
    runs: int
    is_busy: bool = False  # somebody else is at it


NOTHING = Resolved([], set(), set(), 0)


async def lanes_to_look_at(connection: Connection, lanes: int) -> list[int]:
    rows = await load("dependencies/lanes_to_look_at").fetch(connection, lanes=connection.reach.lanes(range(lanes)))
    return sorted(row["lane"] for row in rows)


async def resolve(connection: Connection, lane: int) -> Resolved:
    """Tell those that wait for runs of a lane which of these have ended."""
    async with transaction(connection):
        if await load("limits/lock_gates").fetchrow(connection, lane=lane) is None:
            return NOTHING._replace(is_busy=True)
        checked = await load("dependencies/check").fetchval(connection, lane=lane, count=MOST_NEWS)
        news = await _news(connection, lane)
        told = await _tell(connection, lane, news) if news else Told(NOTHING, set())
    for other, children in told.elsewhere().items():
        await _forget(connection, other, children)
    is_more = len(news) == MOST_NEWS or checked == MOST_NEWS
    return told.resolved._replace(lanes=told.resolved.lanes | ({lane} if is_more else set()))


class Told(NamedTuple):
    """What came of news, and which children wait for runs of other lanes no more."""

    resolved: Resolved
    gone: set[tuple[UUID, int]]

    def elsewhere(self) -> dict[int, list[UUID]]:
        lanes: defaultdict[int, list[UUID]] = defaultdict(list)
        for child, lane in sorted(self.gone):
            lanes[lane].append(child)
        return lanes


async def _news(connection: Connection, lane: int) -> list[News]:
    rows = await load("dependencies/news").fetch(connection, lane=lane, count=MOST_NEWS)
    return await _read(connection, lane, rows)


async def _read(connection: Connection, lane: int, rows: Sequence[Record]) -> list[News]:
    if not rows:
        return []
    parents = [row["parent_id"] for row in rows]
    ends = await load("dependencies/ends").fetch(connection, lane=lane, runs=parents, since=recorded_since(parents))
    states = {row["run_id"]: State(row["state"]) for row in ends}
    return [_as_news(row, states.get(row["parent_id"], State.LOST if row["is_lost"] else None)) for row in rows]


def _as_news(row: Record, state: State | None) -> News:
    condition = Condition(row["condition"])
    how = met(condition, Otherwise(row["otherwise"]), state)
    return News(row["parent_id"], row["child_id"], row["lanes"], condition, state, how)


async def _tell(connection: Connection, lane: int, news: list[News]) -> Told:
    broken = {each.child_id: each for each in news if each.met is Met.NO}
    whole = {each.child_id: each.lanes for each in news if each.met is Met.YES and each.child_id not in broken}
    free = set(whole) - await _pending(connection, whole)
    for each in await _all_news(connection, {child: whole[child] for child in free}):
        if each.met is not Met.YES:
            free.discard(each.child_id)
        if each.met is Met.NO:
            broken[each.child_id] = each
    filled = await _fill(connection, {child: whole[child] for child in free})
    errors = {child: _error(each) for child, each in broken.items()} | filled.errors
    released = await _release(connection, free - filled.later - set(filled.errors), filled.payloads)
    cancelled = await _cancel(connection, errors)
    moving = {*free, *errors} - filled.later
    over = await _over(connection, moving, {row["run_id"] for row in released} | cancelled)
    if over:
        await load("dependencies/forget").execute(connection, lane=lane, children=sorted(over))
    # Those that somebody is changing, and those whose turn is later, stay news.
    await _note(connection, lane, [each for each in news if each.child_id not in moving | filled.later])
    lanes_of = {each.child_id: each.lanes for each in news}
    gone = {(child, other) for child in over for other in lanes_of[child] if other != lane}
    resolved = _resolved(released, cancelled)
    return Told(resolved._replace(lanes=resolved.lanes | ({lane} if filled.later else set())), gone)


def _error(news: News) -> dict[str, Any]:
    assert news.state is not None
    return broken_error(news.parent_id, news.condition, news.state)


async def _note(connection: Connection, lane: int, news: Sequence[News]) -> None:
    """These children know by now, and wait on. Of a parent whose result they do not get, nothing has to be kept.

    What they go on waiting for has not ended: a dead letter may be requeued.
    """
    for how in (Met.YES, Met.NOT_YET):
        some = [each for each in news if each.met is how]
        if some:
            parents = list({each.parent_id for each in some})
            await load("dependencies/told").execute(
                connection,
                lane=lane,
                parents=parents,
                met=parents if how is Met.YES else [],
                pairs=[f"{each.parent_id}{each.child_id}" for each in some],
            )


async def _pending(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> set[UUID]:
    """Those that wait for runs that have not ended, in whatever lanes."""
    lanes: defaultdict[int, list[UUID]] = defaultdict(list)
    for child, own in children.items():
        for lane in own:
            lanes[lane].append(child)
    pending: set[UUID] = set()
    for lane, some in sorted(lanes.items()):
        rows = await load("dependencies/pending").fetch(connection, lane=lane, children=some)
        pending |= {row["id"] for row in rows}
    return pending


async def _all_news(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> list[News]:
    """What those who wait for nothing more have not been told, in whatever lanes: it may be bad news."""
    found: list[News] = []
    for lane in sorted({*chain.from_iterable(children.values())}):
        some = [child for child, own in children.items() if lane in own]
        rows = await load("dependencies/news_of").fetch(connection, lane=lane, children=some)
        found += await _read(connection, lane, rows)
    return found


class Inputs(NamedTuple):
    """What a child gets as arguments: which results of runs of a lane go where."""

    lane: int
    parent: UUID
    path: Path


class Filled(NamedTuple):
    """Arguments with results in them, by child; why others cannot have them; and whose turn is later."""

    payloads: dict[UUID, bytes]
    errors: dict[UUID, dict[str, str]]
    later: set[UUID]


async def _fill(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> Filled:
    """Put results of parents into arguments: of so many children that what is read stays small."""
    inputs = await _inputs(connection, children)
    filled = Filled({}, {}, set())
    sizes = await _by_parent(connection, inputs, RESULT_SIZES, "sizes")
    chosen = _chosen(inputs, sizes, filled)
    results = await _by_parent(connection, chosen, RESULTS, "results")
    for lane, some in by_lane(chosen):
        for row in await load("dependencies/payloads").fetch(connection, lane=lane, runs=some):
            places = [(each.path, results.get(each.parent)) for each in chosen[row["id"]]]
            payload = filled_in(row["payload"], places)
            if payload is None:
                filled.errors[row["id"]] = TOO_LARGE
            else:
                filled.payloads[row["id"]] = payload
    return filled


def _chosen(inputs: Mapping[UUID, list[Inputs]], sizes: Mapping[UUID, int], filled: Filled) -> dict[UUID, list[Inputs]]:
    """Those whose results are read now. The others' turn is later, or they never get theirs: noted in `filled`."""
    chosen: dict[UUID, list[Inputs]] = {}
    total = 0
    for child, own in inputs.items():
        size = sum(sizes.get(each.parent, 0) for each in own)
        if any(each.parent not in sizes for each in own):
            filled.errors[child] = RESULT_GONE
        elif size > MAX_PAYLOAD_BYTES:
            filled.errors[child] = TOO_LARGE
        elif chosen and total + size > MOST_BYTES:
            filled.later.add(child)
        else:
            chosen[child] = own
            total += size
    return chosen


async def _inputs(connection: Connection, children: Mapping[UUID, Sequence[int]]) -> dict[UUID, list[Inputs]]:
    """By child, which results of its parents go where."""
    found: defaultdict[UUID, list[Inputs]] = defaultdict(list)
    for lane in sorted({*chain.from_iterable(children.values())}):
        some = [child for child, own in children.items() if lane in own]
        for row in await load("dependencies/inputs").fetch(connection, lane=lane, children=some):
            for parent, places in zip(row["parents"], msgspec.json.decode(row["places"]), strict=True):
                found[row["child_id"]] += [Inputs(lane, parent, tuple(path)) for path in places]
    return found


async def _by_parent(
    connection: Connection, inputs: Mapping[UUID, Sequence[Inputs]], statement: Statement, column: str
) -> dict[UUID, Any]:
    """What is asked about the parents of all of them, each once; those that are in history."""
    lanes: defaultdict[int, set[UUID]] = defaultdict(set)
    for each in chain.from_iterable(inputs.values()):
        lanes[each.lane].add(each.parent)
    found: dict[UUID, Any] = {}
    for lane, parents in sorted(lanes.items()):
        row = await statement.fetchrow(connection, lane=lane, runs=list(parents), since=recorded_since(parents))
        if row is not None and row["runs"] is not None:
            found |= dict(zip(row["runs"], row[column], strict=True))
    return found


async def _release(connection: Connection, children: Iterable[UUID], payloads: Mapping[UUID, bytes]) -> list[Record]:
    rows: list[Record] = []
    for lane, some in by_lane(sorted(children)):
        rows += await load("dependencies/release").fetch(
            connection, lane=lane, runs=some, payloads=[payloads.get(child) for child in some]
        )
    return rows


async def _cancel(connection: Connection, errors: Mapping[UUID, Any]) -> set[UUID]:
    cancelled: set[UUID] = set()
    for lane, some in by_lane(sorted(errors)):
        texts = [msgspec.json.encode(errors[child]).decode() for child in some]
        rows = await load("dependencies/cancel").fetch(connection, lane=lane, runs=some, errors=texts)
        cancelled |= {row["id"] for row in rows}
    return cancelled


async def _over(connection: Connection, children: set[UUID], gone: set[UUID]) -> set[UUID]:
    """Those that wait no more: they went, or were gone before. Somebody may be changing the others just now."""
    kept: set[UUID] = set()
    for lane, some in by_lane(sorted(children - gone)):
        rows = await load("dependencies/still_held").fetch(connection, lane=lane, runs=some)
        kept |= {row["id"] for row in rows}
    return children - kept


async def _forget(connection: Connection, lane: int, children: Sequence[UUID]) -> None:
    """What others of their lanes have told them. If this fails, it is found when the last of those has ended."""
    async with transaction(connection):
        if await load("limits/lock_gates").fetchrow(connection, lane=lane) is not None:
            await load("dependencies/forget").execute(connection, lane=lane, children=list(children))


def _resolved(released: Sequence[Record], cancelled: set[UUID]) -> Resolved:
    return Resolved(
        [
            notify.ready(lane_of(row["run_id"]), row["line_id"], row["priority"]) if row["is_due"] else notify.later()
            for row in released
            if row["gate"] is None or not row["is_due"]
        ],
        {row["gate"] for row in released if row["gate"] is not None and row["is_due"]},
        {lane_of(child) for child in cancelled},  # others may wait for them in turn
        len(released) + len(cancelled),
    )
