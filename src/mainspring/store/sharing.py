"""Releasing runs of a limit that the values of a key share in turns (`model/fair_share.py`).

All its gates are looked at together, in all lanes, under the lock of one lane: whose turn it is depends on who else
waits.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mainspring.model.concurrency import Turn, home_of_gate, rule_id
from mainspring.model.fair_share import NO_WINDOW, Window, in_turns
from mainspring.model.rate import TICK_SECONDS, whole_tokens
from mainspring.store import buckets, notify
from mainspring.store.admitted import NOBODY, Admitted
from mainspring.store.limits import rule_of
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mainspring.model.concurrency import LimitRule
    from mainspring.store.connection import Connection, Record

MOST_VALUES = 500  # that take turns in one transaction: it locks a lane
MOST_RUNS = 1_000
PASSED_OVER = 2_000  # runs of one value whose lines are paused or full, before those of others
LOOK_SECONDS = 0.02  # while runs wait for workers: nobody says when those have taken some
LONGEST_PAUSE = 0.5


class SharedLimit(NamedTuple):
    """One limit: where its lock is, by what the names of its gates begin, and what it says now."""

    home: int
    number: str
    rule: LimitRule | None  # None: it was removed
    lanes: int
    now: float

    @property
    def id(self) -> int:
        return rule_id(self.number)

    @property
    def shares_workers(self) -> bool:
        return self.rule is not None and self.rule.is_share_of_workers


class Choice(NamedTuple):
    """Who passes, and when to look again: None, if somebody will say so. With room, more could have passed."""

    turns: Sequence[Turn]
    look_again_in: float | None = None
    window: Window | None = None
    has_room: bool = False


async def admit(connection: Connection, number: str, lanes: int) -> Admitted:
    """Release whose turn it is, inside a transaction."""
    home = home_of_gate(number, lanes)
    if await load("limits/lock_gates").fetchrow(connection, lane=home) is None:
        return NOBODY._replace(later={number: TICK_SECONDS}, busy=frozenset([number]))  # somebody else is at it
    limit = await _limit(connection, home, number, lanes)
    window, after = await _remembered(connection, limit)
    if limit.shares_workers and 0 < limit.now - window.at < LOOK_SECONDS / 2:
        return NOBODY  # somebody has just looked, and will again
    values = await _values(connection, limit, after)
    if not values:
        return NOBODY
    choose = _share_workers if limit.shares_workers else _share_slots
    choice = await choose(connection, limit, values, window)
    rows = [row for lane in range(lanes) for row in await _pass(connection, limit, lane, choice.turns)]
    if choice.turns or choice.has_room:  # else others were not passed over, either
        after = values[-1] if len(values) == MOST_VALUES else ""
        if choice.has_room and after:
            # Those of the next values may pass. A share of the workers is not looked at twice in a moment.
            choice = choice._replace(look_again_in=LOOK_SECONDS if limit.shares_workers else 0.0)
    await _remember(connection, limit, choice.window or window, after)
    return _admitted(limit, choice, rows)


# ── what there is, and who waits ────────────────────────────────────────────────────────────────────────────────


async def _limit(connection: Connection, home: int, number: str, lanes: int) -> SharedLimit:
    rows = await load("limits/rules_of_gates").fetch(connection, ids=[rule_id(number)])
    now = float(await load("limits/now").fetchval(connection))
    return SharedLimit(home, number, rule_of(rows[0]) if rows else None, lanes, now)


async def _remembered(connection: Connection, limit: SharedLimit) -> tuple[Window, str]:
    row = await load("limits/window").fetchrow(connection, lane=limit.home, rule=limit.id)
    return (NO_WINDOW, "") if row is None else (Window(row["size"], row["filled"], row["at"]), row["after"])


async def _values(connection: Connection, limit: SharedLimit, after: str) -> list[str]:
    """The gates at which somebody waits: where there are very many, the next ones, and then from the first again."""
    found: set[str] = set()
    for lane in range(limit.lanes):
        rows = await load("limits/waiting_values").fetch(
            connection, lane=lane, number=limit.number, after=after or f"{limit.number}:", count=MOST_VALUES
        )
        found.update(row["gate"] for row in rows)
    if not found and after:
        return await _values(connection, limit, "")
    return sorted(found)[:MOST_VALUES]


async def _paused_lines(connection: Connection) -> set[int]:
    return {row["id"] for row in await load("limits/paused_lines").fetch(connection)}


async def _waiting(
    connection: Connection, limit: SharedLimit, values: Sequence[str], count: int, without: Iterable[int]
) -> list[Turn]:
    """The first at each gate, but for those of some lines."""
    found = []
    for lane in range(limit.lanes):
        rows = await load("limits/next_of_shares").fetch(
            connection, lane=lane, gates=values, count=count, looked_at=count + PASSED_OVER, without=sorted(without)
        )
        found += [Turn(row["turn"], row["id"], lane, row["gate"], row["line_id"]) for row in rows]
    return found


# ── slots and tokens ────────────────────────────────────────────────────────────────────────────────────────────


class UsedSlots(NamedTuple):
    """How many slots each value has; and of these, how many are held by runs that kept them and wait for it again."""

    held: Counter[str]
    kept: Counter[str]


async def _share_slots(connection: Connection, limit: SharedLimit, values: Sequence[str], _: Window) -> Choice:
    """What the limit leaves goes to whoever has least of it. Of one that was removed, everybody passes."""
    rates = {} if limit.rule is None or limit.rule.rate is None else {limit.number: limit.rule.rate}
    filled = await buckets.filled(connection, limit.home, rates, limit.now)
    used = await _used(connection, limit)
    starts = min([MOST_RUNS, *(whole_tokens(bucket) for bucket in filled.values())])
    # Who kept a slot needs no other: else it might wait for those that wait for what it holds besides.
    chosen = (await _with_slots(connection, limit, used.kept))[:starts]
    most = min(starts - len(chosen), _free(limit, used.held.total()))
    waiting = await _first_at(connection, limit, values, most) if most > 0 else []
    others = in_turns([each for each in waiting if each not in chosen], used.held, max(0, most))
    passed = {limit.number: len(chosen) + len(others)}
    await buckets.spend(connection, limit.home, filled, passed, rates)
    again = buckets.until_next(filled, passed, rates).get(limit.number)
    is_full = passed[limit.number] == MOST_RUNS  # not all fitted into one transaction
    return Choice([*chosen, *others], 0.0 if is_full else again, has_room=most > len(others))


async def _used(connection: Connection, limit: SharedLimit) -> UsedSlots:
    """Nothing where only starts are limited: then those are what is shared."""
    used = UsedSlots(Counter(), Counter())
    if limit.rule is not None and limit.rule.most is not None:
        for lane in range(limit.lanes):
            rows = await load("limits/shares").fetch(connection, lane=lane, number=limit.number)
            used.held.update({row["gate"]: row["held"] for row in rows})
            used.kept.update({row["gate"]: row["kept"] for row in rows if row["kept"]})
    return used


def _free(limit: SharedLimit, used: int) -> int:
    return MOST_RUNS if limit.rule is None or limit.rule.most is None else limit.rule.most - used


async def _with_slots(connection: Connection, limit: SharedLimit, kept: Mapping[str, int]) -> list[Turn]:
    """Those that kept their slots while they waited for another attempt: they stand before others of their value."""
    if not kept:
        return []
    most = max(kept.values())
    found = await _waiting(connection, limit, list(kept), most, await _paused_lines(connection))
    return [each for each in found if each.turn == 0]


async def _first_at(connection: Connection, limit: SharedLimit, values: Sequence[str], most: int) -> list[Turn]:
    count = max(1, min(most, 2 * MOST_RUNS // len(values)))  # whoever has less than the others may get more of it
    return await _waiting(connection, limit, values, count, await _paused_lines(connection))


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _share_workers(connection: Connection, limit: SharedLimit, values: Sequence[str], window: Window) -> Choice:
    """As many come in line as workers take in a moment; each line for itself, since others may serve it."""
    depths = await _in_line(connection, limit)
    size = round(window.next_size(depths.total(), limit.now))
    full = {line for line, depth in depths.items() if depth >= size}
    count = max(1, min(size, 2 * size // len(values)))
    waiting = await _waiting(connection, limit, values, count, full | await _paused_lines(connection))
    lines = {each.line_id for each in waiting}
    chosen = [each for line in lines for each in _into_line(waiting, line, size - depths[line])]
    # Whose runs end hints at it, too: so while nobody passes, there is time.
    pause = LOOK_SECONDS if chosen else min(LONGEST_PAUSE, max(LOOK_SECONDS, 2 * (limit.now - window.at)))
    return Choice(chosen, pause, Window(size, depths.total() + len(chosen), limit.now), has_room=not waiting)


def _into_line(waiting: Iterable[Turn], line: int, most: int) -> list[Turn]:
    return in_turns([each for each in waiting if each.line_id == line], {}, max(0, most))


async def _in_line(connection: Connection, limit: SharedLimit) -> Counter[int]:
    """How many of those that passed are still in line, by line: others that are there need not keep them waiting."""
    depths: Counter[int] = Counter()
    for lane in range(limit.lanes):
        rows = await load("limits/in_line").fetch(connection, lane=lane, number=limit.number)
        depths.update({row["line_id"]: row["depth"] for row in rows})
    return depths


# ── releasing ───────────────────────────────────────────────────────────────────────────────────────────────────


async def _pass(connection: Connection, limit: SharedLimit, lane: int, chosen: Iterable[Turn]) -> list[Record]:
    ours = [each for each in chosen if each.lane == lane]
    if not ours:
        return []
    is_known = limit.rule is not None
    return await load("limits/admit").fetch(
        connection,
        lane=lane,
        runs=[each.run_id for each in ours],
        gates=[each.gate for each in ours],
        is_known=[is_known] * len(ours),
        takes_slot=[is_known] * len(ours),
        strict=[False] * len(ours),
        halting=[False] * len(ours),
        released_at=limit.now,
    )


async def _remember(connection: Connection, limit: SharedLimit, window: Window, after: str) -> None:
    await load("limits/keep_window").execute(
        connection,
        lane=limit.home,
        rule=limit.id,
        size=window.size,
        filled=window.filled,
        at=window.at,
        after=after,
    )


def _admitted(limit: SharedLimit, choice: Choice, rows: Sequence[Record]) -> Admitted:
    lanes = {each.run_id: each.lane for each in choice.turns}
    gates = {row["next_gate"] for row in rows if row["next_gate"] is not None}
    again = choice.look_again_in
    return Admitted(
        [
            notify.ready(lanes[row["run_id"]], row["line_id"], row["priority"])
            for row in rows
            if row["next_gate"] is None
        ],
        gates | ({limit.number} if again == 0.0 else set()),
        {limit.number: again} if again else {},
        len(rows),
    )
