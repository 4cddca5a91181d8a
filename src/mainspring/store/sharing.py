"""Releasing runs of a limit that the values of a key share in turns (`model/fair_share.py`).

All its gates are looked at together, in all lanes, under the lock of one lane: whose turn it is depends on who else
waits.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mainspring.model.concurrency import Turn, home_of_gate, rule_id
from mainspring.model.fair_share import MOST_IN_LINE, NO_WINDOW, Window, in_turns
from mainspring.model.rate import TICK_SECONDS, whole_tokens
from mainspring.model.run import PRIORITIES
from mainspring.store import buckets, notify
from mainspring.store.admitted import NOBODY, Admitted
from mainspring.store.limits import rule_of
from mainspring.store.statements import load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mainspring.model.concurrency import LimitRule
    from mainspring.model.rate import Bucket
    from mainspring.store.connection import Connection, Record

MOST_VALUES = 500  # that take turns in one transaction: it locks a lane
MOST_RUNS = 1_000
LOOK_SECONDS = 0.02  # while runs wait for workers: nobody says when those have taken some
MOST_LOOKS = 3  # for runs of lines that are not full


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
    """Who passes, and when to look again: None, if somebody will say so."""

    turns: Sequence[Turn]
    look_again_in: float | None = None
    window: Window | None = None


async def admit(connection: Connection, number: str, lanes: int) -> Admitted:
    """Release whose turn it is, inside a transaction."""
    home = home_of_gate(number, lanes)
    if await load("limits/lock_gates").fetchrow(connection, lane=home) is None:
        return NOBODY._replace(later={number: TICK_SECONDS})  # somebody else is at it
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
    if choice.turns:  # else others were not passed over, either
        after = values[-1] if len(values) == MOST_VALUES else ""
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
        rows = await load("limits/next_turns").fetch(
            connection,
            lane=lane,
            gates=values,
            counts=[count] * len(values),
            strict=[False] * len(values),
            paused=sorted(without),
        )
        found += [Turn(row["turn"], row["id"], lane, row["gate"], row["line_id"]) for row in rows]
    return found


# ── slots and tokens ────────────────────────────────────────────────────────────────────────────────────────────


async def _share_slots(connection: Connection, limit: SharedLimit, values: Sequence[str], _: Window) -> Choice:
    """What the limit leaves goes to whoever has least of it. Of one that was removed, everybody passes."""
    rates = {} if limit.rule is None or limit.rule.rate is None else {limit.number: limit.rule.rate}
    filled = await buckets.filled(connection, limit.home, rates, limit.now)
    used = await _used(connection, limit)
    most = _left(limit, used.total(), filled)
    waiting = await _first_at(connection, limit, values, most) if most > 0 else []
    chosen = in_turns(waiting, used, most)
    passed = {limit.number: len(chosen)}
    await buckets.spend(connection, limit.home, filled, passed, rates)
    if len(chosen) == MOST_RUNS:
        return Choice(chosen, look_again_in=0.0)  # not all fitted into one transaction
    return Choice(chosen, buckets.until_next(filled, passed, rates).get(limit.number))


async def _used(connection: Connection, limit: SharedLimit) -> Counter[str]:
    """How many slots each has; nothing where only starts are limited: then those are what is shared."""
    used: Counter[str] = Counter()
    if limit.rule is not None and limit.rule.most is not None:
        for lane in range(limit.lanes):
            rows = await load("limits/shares").fetch(connection, lane=lane, number=limit.number)
            used.update({row["gate"]: row["held"] for row in rows})
    return used


def _left(limit: SharedLimit, used: int, filled: Mapping[str, Bucket]) -> int:
    tokens = [whole_tokens(bucket) for bucket in filled.values()]
    slots = [limit.rule.most - used] if limit.rule is not None and limit.rule.most is not None else []
    return min([MOST_RUNS, *tokens, *slots])


async def _first_at(connection: Connection, limit: SharedLimit, values: Sequence[str], most: int) -> list[Turn]:
    count = max(1, min(most, 2 * MOST_RUNS // len(values)))  # whoever has less than the others may get more of it
    return await _waiting(connection, limit, values, count, await _paused_lines(connection))


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _share_workers(connection: Connection, limit: SharedLimit, values: Sequence[str], window: Window) -> Choice:
    """As many come in line as workers take in a moment; each line for itself, since others may serve it."""
    waiting, depths = await _with_room_in_line(connection, limit, values, window)
    least = min(depths.values(), default=0)
    size = window.next_size(least, limit.now)
    chosen = [each for line, depth in depths.items() for each in _into_line(waiting, line, round(size) - depth)]
    return Choice(chosen, LOOK_SECONDS, Window(size, least + len(chosen), limit.now))


async def _with_room_in_line(
    connection: Connection, limit: SharedLimit, values: Sequence[str], window: Window
) -> tuple[list[Turn], dict[int, int]]:
    """The first at each gate, and how many are in their lines. Those of full lines may stand before others: without."""
    without = await _paused_lines(connection)
    count = max(1, round(MOST_IN_LINE / len(values)))
    waiting: list[Turn] = []
    depths: dict[int, int] = {}
    for _ in range(MOST_LOOKS):
        waiting = await _waiting(connection, limit, values, count, without)
        depths |= await _in_line(connection, limit, {each.line_id for each in waiting} - depths.keys())
        full = {line for line, depth in depths.items() if depth >= window.next_size(depth, limit.now)}
        if full <= without:
            break
        without |= full
    return waiting, depths


def _into_line(waiting: Iterable[Turn], line: int, most: int) -> list[Turn]:
    return in_turns([each for each in waiting if each.line_id == line], {}, max(0, most))


async def _in_line(connection: Connection, limit: SharedLimit, lines: set[int]) -> dict[int, int]:
    depths: Counter[int] = Counter(dict.fromkeys(lines, 0))
    for lane in range(limit.lanes):
        rows = await load("limits/in_line").fetch(
            connection, lane=lane, lines=sorted(lines), priorities=list(PRIORITIES), bound=MOST_IN_LINE
        )
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
