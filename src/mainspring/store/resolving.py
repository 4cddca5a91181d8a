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
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mainspring.model.dependency import Condition, Met, Otherwise, broken_error, met
from mainspring.model.ids import by_lane, lane_of
from mainspring.model.lifecycle import State
from mainspring.store import dependencies, fan_outs, inputs, notify
from mainspring.store.connection import transaction
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from mainspring.store.connection import Connection, Record

    PassOn = Callable[[Iterable[notify.WakeUp]], list[notify.WakeUp]]

MOST_NEWS = 1_000  # per transaction: it locks a lane


class News(NamedTuple):
    """A run has ended that another one waits for."""

    parent_id: UUID
    child_id: UUID
    lanes: Sequence[int]
    condition: Condition
    state: State | None  # None: it is not over, for example since it was requeued
    met: Met
    inputs: str | None = None  # arguments that get its result


class Resolved(NamedTuple):
    """What was released, and where to look next."""

    wake_ups: list[notify.WakeUp]
    gates: set[str]  # at which released runs wait
    lanes: set[int]  # in which there may be more news
    runs: int
    is_busy: bool = False  # somebody else is at it

    def with_more(self, lanes: set[int], runs: int) -> Resolved:
        return self._replace(lanes=self.lanes | lanes, runs=self.runs + runs)


NOTHING = Resolved([], set(), set(), 0)


async def resolve(connection: Connection, lane: int, pass_on: PassOn = list) -> Resolved:
    """Tell those that wait for runs of a lane which of these have ended; `pass_on` says which wake-ups are sent.

    What led to their release is forgotten after it: whoever waited for ten thousand runs is on its way meanwhile.
    """
    async with transaction(connection):
        if await load("limits/lock_gates").fetchrow(connection, lane=lane) is None:
            return NOTHING._replace(is_busy=True)
        checked = await load("dependencies/check").fetchval(connection, lane=lane, count=MOST_NEWS)
        rows = await load("dependencies/news").fetch(connection, lane=lane, count=MOST_NEWS)
        news = await _read(connection, lane, [row for row in rows if not row["is_of_fan_out"]])
        told = await _tell(connection, lane, news) if news else Told(NOTHING, set())
        of_fan_outs = [row for row in rows if row["is_of_fan_out"]]
        joined = await fan_outs.join(connection, lane, of_fan_outs) if of_fan_outs else fan_outs.NOTHING
    notify.send(connection, pass_on(told.resolved.wake_ups))
    await _forget(connection, lane, told.by_lane())
    asked = await fan_outs.abandon(connection, lane, joined.over)
    is_more = len(rows) == MOST_NEWS or checked == MOST_NEWS or joined.ended or joined.over
    notify.send(connection, [notify.cancel(worker) for worker in asked])
    moved = len(joined.ended) + len(joined.over)
    return told.resolved.with_more({lane} if is_more else set(), moved)


class Told(NamedTuple):
    """What came of news, and which children wait for runs of which lanes no more."""

    resolved: Resolved
    gone: set[tuple[UUID, int]]

    def by_lane(self) -> dict[int, list[UUID]]:
        lanes: defaultdict[int, list[UUID]] = defaultdict(list)
        for child, lane in sorted(self.gone):
            lanes[lane].append(child)
        return lanes


async def _read(connection: Connection, lane: int, rows: Sequence[Record]) -> list[News]:
    states = await dependencies.states_of_parents(connection, lane, rows)
    return [_as_news(row, states.get(row["parent_id"])) for row in rows]


def _as_news(row: Record, state: str | None) -> News:
    verdict = _verdict(row["condition"], row["otherwise"], state)
    return News(row["parent_id"], row["child_id"], row["lanes"], *verdict, row["inputs"])


@cache  # there are few, and news come by the thousand
def _verdict(condition: str, otherwise: str, state: str | None) -> tuple[Condition, State | None, Met]:
    ended_as = None if state is None else State(state)
    return Condition(condition), ended_as, met(Condition(condition), Otherwise(otherwise), ended_as)


async def _tell(connection: Connection, lane: int, news: list[News]) -> Told:
    broken = {each.child_id: each for each in news if each.met is Met.NO}
    whole = {each.child_id: each.lanes for each in news if each.met is Met.YES and each.child_id not in broken}
    free = set(whole) - await _pending(connection, whole)
    for each in await _other_news(connection, {child: whole[child] for child in free}, news):
        if each.met is not Met.YES:
            free.discard(each.child_id)
        if each.met is Met.NO:
            broken[each.child_id] = each
    filled = await inputs.fill(connection, {child: whole[child] for child in free})
    errors = {child: _error(each) for child, each in broken.items()} | filled.errors
    waiting = filled.later | filled.busy
    released = await _release(connection, free - waiting - set(filled.errors), filled.payloads)
    cancelled = await _cancel(connection, errors)
    moving = {*free, *errors} - filled.later
    over = await _over(connection, moving, {row["run_id"] for row in released} | cancelled)
    # Those that somebody is changing, and those whose turn is later, stay news.
    await _note(connection, lane, [each for each in news if each.child_id not in moving | filled.later])
    lanes_of = {each.child_id: each.lanes for each in news}
    gone = {(child, other) for child in over for other in lanes_of[child]}
    resolved = _resolved(released, cancelled)
    return Told(resolved._replace(lanes=resolved.lanes | ({lane} if filled.later else set())), gone)


def _error(news: News) -> dict[str, Any]:
    assert news.state is not None
    return broken_error(news.parent_id, news.condition, news.state)


async def _note(connection: Connection, lane: int, news: Sequence[News]) -> None:
    """These children know by now, and wait on. Of a parent whose result they do not get, nothing has to be kept.

    What they go on waiting for has not ended: a dead letter may be requeued.
    """
    ended = [each for each in news if each.met is Met.YES]
    collected = await inputs.collect(connection, lane, [(each.parent_id, each.child_id, each.inputs) for each in ended])
    kept = [each for each in ended if each.inputs is not None and each.child_id not in collected]
    await _forget_pairs(connection, lane, [each for each in ended if each.inputs is None])
    for some, have_ended in ((kept, True), ([each for each in news if each.met is Met.NOT_YET], False)):
        if some:
            await load("dependencies/told").execute(connection, lane=lane, **_pairs(some), have_ended=have_ended)


async def _forget_pairs(connection: Connection, lane: int, news: Sequence[News]) -> None:
    if news:
        await load("dependencies/forget_pairs").execute(connection, lane=lane, **_pairs(news))


def _pairs(news: Sequence[News]) -> dict[str, list[UUID]]:
    return {"parents": [each.parent_id for each in news], "children": [each.child_id for each in news]}


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


async def _other_news(
    connection: Connection, children: Mapping[UUID, Sequence[int]], judged: Iterable[News]
) -> list[News]:
    """What else those who wait for nothing more have not been told, in whatever lanes: it may be bad news."""
    known = {(each.parent_id, each.child_id) for each in judged}
    found: list[News] = []
    for lane in sorted({*chain.from_iterable(children.values())}):
        some = [child for child, own in children.items() if lane in own]
        rows = await load("dependencies/news_of").fetch(connection, lane=lane, children=some)
        unknown = [row for row in rows if (row["parent_id"], row["child_id"]) not in known]
        found += await _read(connection, lane, unknown)
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


async def _forget(connection: Connection, lane: int, children: Mapping[int, Sequence[UUID]]) -> None:
    """What they waited for, in all lanes.

    The lane of the news comes last, and keeps those of whom another lane could not be locked: news lead back here.
    """
    kept: set[UUID] = set()
    for other in sorted(children, key=lambda each: each == lane):
        some = children[other] if other != lane else [child for child in children[other] if child not in kept]
        if not await _forget_in(connection, other, some):
            kept.update(some)


async def _forget_in(connection: Connection, lane: int, children: Sequence[UUID]) -> bool:
    async with transaction(connection):
        if await load("limits/lock_gates").fetchrow(connection, lane=lane) is None:
            return False
        await load("dependencies/forget").execute(connection, lane=lane, children=list(children))
        return True


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
