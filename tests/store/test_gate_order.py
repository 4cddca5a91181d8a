"""Whose turn it is at a gate: the most urgent, but nobody waits for ever; where order is strict, nobody overtakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring import Limit, Mainspring
from mainspring.clock import SystemClock
from mainspring.model.concurrency import home_of_gate
from mainspring.model.gate_turns import BITS_OF_RANK, whole
from mainspring.store import admission, gate_fronts, limits

from .test_limits import LANES, SUBMITTING, Crowd, limited, release

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock

NEVER_THE_OLDEST, ALWAYS_THE_OLDEST = 0.0, 0.9999


@pytest.fixture
def crowd() -> Crowd:
    SUBMITTING.clear()
    return Crowd()


async def end_one(connection: Connection) -> int:
    """Who holds the slot ends; answers with its priority."""
    row = await connection.fetchrow("delete from ready returning lane, id, priority")
    assert row is not None
    await connection.execute("delete from slot where lane = $1 and run_id = $2", row["lane"], row["id"])
    return int(row["priority"])


@pytest.mark.parametrize(
    ("chance", "served"),
    [(ALWAYS_THE_OLDEST, [9, 8, 0, 0, 0, 0]), (NEVER_THE_OLDEST, [0, 0, 0, 0, 0, 0])],
    ids=["one in sixteen", "the others"],
)
async def test_who_waits_longest_has_a_turn_however_urgent_the_others_are(
    frozen_app: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    crowd: Crowd,
    monkeypatch: pytest.MonkeyPatch,
    chance: float,
    served: list[int],
) -> None:
    send = limited(frozen_app, crowd, Limit(1))
    monkeypatch.setattr(admission, "chance", lambda: chance)
    await send.submit()
    await release(connection, clock)
    for priority in (9, 8, 0, 0, 0, 0):
        await send.options(priority=priority).submit()
        await clock.advance(1)
    assert await end_one(connection) == 5

    found = []
    for _ in served:
        await release(connection, clock)
        await send.options(priority=0).submit()  # they keep coming
        await release(connection, clock)
        found.append(await end_one(connection))
    assert found == served


async def test_where_order_is_strict_nobody_passes_before_his_turn(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "chance", lambda: ALWAYS_THE_OLDEST)
    send = limited(frozen_app, crowd, Limit(1, order="strict"))
    for priority in (3, 9, 0):
        await send.options(priority=priority).submit()
    found = []
    for _ in range(3):
        await release(connection, clock)
        found.append(await end_one(connection))

    assert found == [3, 9, 0]


# ── where the line begins ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at a gate takes so long that it is worth to remember where the line begins."""
    monkeypatch.setattr(gate_fronts, "SLOW_SECONDS", -1.0)
    monkeypatch.setattr(gate_fronts, "SLOW_SECONDS_PER_GATE", 0.0)
    monkeypatch.setattr(gate_fronts, "LOOK_AT_MOST_EVERY", 1.0)


class Line:
    """Runs at a gate with one slot, and somebody who remembers where it begins."""

    def __init__(self, connection: Connection, gate: str) -> None:
        self._connection = connection
        self._gate = gate
        self._lane = home_of_gate(gate, LANES)
        self.clock = SettableClock()
        self.fronts = gate_fronts.GateFronts(self.clock)

    async def put(self, turn: int, priority: int = 5) -> None:
        await self._connection.execute(
            "insert into held (lane, id, tenant_id, job_id, job_version, line_id, priority, due_at, payload, reason,"
            " gates, gate, turn)"
            " values ($1, gen_random_uuid(), 1, 1, 1, 1, $2, clock_now(), '{}', 'limit', $3, $3, $4)",
            self._lane,
            priority,
            self._gate,
            turn,
        )

    async def next(self) -> int | None:
        """Which turn passes, and ends at once."""
        before = {row["id"]: row["turn"] for row in await self._connection.fetch("select id, turn from held")}
        self.admitted = await admission.admit(self._connection, [self._gate], LANES, self.fronts)
        row = await self._connection.fetchrow("delete from ready returning id")
        await self._connection.execute("delete from slot")
        return None if row is None else before[row["id"]]


class SettableClock(SystemClock):
    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


async def line_of(app: Mainspring, connection: Connection, crowd: Crowd, limit: Limit) -> Line:
    await limited(app, crowd, limit).submit()
    await (await app.services()).submitter.until_admitted()
    await connection.execute("delete from ready; delete from held; delete from slot")
    (rule,) = (await limits.book(connection, tenant_id=app.actor.tenant)).rules
    return Line(connection, rule.number)


def at(priority: int, rank: int) -> int:
    return (priority << BITS_OF_RANK) + rank


@pytest.mark.usefixtures("slow")
async def test_the_line_is_looked_at_from_where_it_began_last_and_now_and_then_from_the_very_front(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "chance", lambda: NEVER_THE_OLDEST)
    line = await line_of(frozen_app, connection, crowd, Limit(1))
    for rank in (10, 11, 12):
        await line.put(at(5, rank))
    assert await line.next() == at(5, 10)
    await line.put(at(5, 3))  # somebody whose transaction committed late

    assert await line.next() == at(5, 11)
    line.clock.seconds += 1.0
    assert await line.next() == at(5, 3)
    assert await line.next() == at(5, 12)


@pytest.mark.usefixtures("slow")
async def test_who_is_more_urgent_or_kept_his_slot_passes_at_once_wherever_the_line_begins(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "chance", lambda: NEVER_THE_OLDEST)
    line = await line_of(frozen_app, connection, crowd, Limit(1))
    for rank in (10, 11):
        await line.put(at(5, rank))
    assert await line.next() == at(5, 10)
    for turn in (at(9, 1), at(2, 20), 0):
        await line.put(turn)

    assert [await line.next() for _ in range(4)] == [0, at(2, 20), at(5, 11), at(9, 1)]


@pytest.mark.usefixtures("slow")
async def test_where_too_few_are_found_the_very_front_is_looked_at_soon(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    line = await line_of(frozen_app, connection, crowd, Limit(1))
    await line.put(at(5, 10))
    assert await line.next() == at(5, 10)
    await line.put(at(5, 3))

    assert await line.next() is None
    (seconds,) = line.admitted.later.values()
    line.clock.seconds += seconds
    assert await line.next() == at(5, 3)
    assert await line.next() is None


@pytest.mark.usefixtures("slow")
async def test_where_order_is_strict_the_very_front_is_looked_at_every_time(
    frozen_app: Mainspring, connection: Connection, crowd: Crowd
) -> None:
    line = await line_of(frozen_app, connection, crowd, Limit(1, order="strict"))
    for turn in (10, 11):
        await line.put(turn)
    assert await line.next() == 10
    await line.put(3)

    assert [await line.next() for _ in range(2)] == [3, 11]


async def test_no_more_gates_are_remembered_than_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_fronts, "MOST_REMEMBERED", 3)
    fronts = gate_fronts.GateFronts(SettableClock())
    for number in range(10):
        fronts.learn(0, [whole(str(number), 1)], [], 1.0)

    assert [number for number in range(10) if len(fronts.spans(0, str(number), 1, 0)) > 1] == [7, 8, 9]
