"""Very many gates at which nobody can pass: they cost little, and a limit that is raised is in force at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.hands import HandClock

from mainspring import Limit, Mainspring
from mainspring.clock import SystemClock
from mainspring.keeper import gatekeeper
from mainspring.keeper.gatekeeper import Gatekeeper
from mainspring.keeper.raised_limits import RaisedLimits
from mainspring.model.rate import TICK_SECONDS
from mainspring.store import admission, limits

from .test_limits import LANES, SUBMITTING, Crowd, limited, places, release

if TYPE_CHECKING:
    from collections.abc import Collection

    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

KEYS = 60


@pytest.fixture
def crowd() -> Crowd:
    SUBMITTING.clear()
    return Crowd()


@pytest.fixture
async def closed(frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd) -> Mainspring:
    """Somebody holds the slot of each key, and two wait for it."""
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    await send.submit_many([{"customer": f"c{number % KEYS}"} for number in range(3 * KEYS)])
    await release(connection, clock)
    assert await places(connection) == {"held": 2 * KEYS, "ready": KEYS, "slot": KEYS}
    return frozen_app


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gates that a keeper has locked and counted."""
    found: list[str] = []
    admit = admission.admit

    async def noted(connection: Connection, gates: Collection[str], *others: Any) -> Any:
        found.extend(gates)
        return await admit(connection, gates, *others)

    monkeypatch.setattr(gatekeeper, "admit", noted)
    return found


async def free_one_slot(connection: Connection) -> str:
    """As somebody does who dies before he says so; answers with its gate."""
    return str(
        await connection.fetchval(
            "with freed as (delete from slot where gate = (select min(gate) from slot) returning lane, run_id, gate),"
            " ended as (delete from ready using freed where ready.lane = freed.lane and ready.id = freed.run_id)"
            " select gate from freed"
        )
    )


async def resting(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> Gatekeeper:
    """A keeper that has looked at all gates, and will not do so again for long."""
    monkeypatch.setattr(gatekeeper, "SHARE", 1e-9)
    monkeypatch.setattr(gatekeeper, "LONGEST_REST", float("inf"))
    keeper = Gatekeeper(lanes=LANES, clock=SystemClock())
    while await keeper.step(connection) == 0.0:
        pass
    return keeper


async def test_nobody_counts_where_all_slots_are_given_out(
    closed: Mainspring, connection: Connection, clock: FrozenClock, looked_at: list[str]
) -> None:
    await Gatekeeper(lanes=LANES, clock=clock).step(connection)
    assert looked_at == []

    gate = await free_one_slot(connection)
    await Gatekeeper(lanes=LANES, clock=clock).step(connection)
    assert looked_at == [gate]
    assert (await places(connection))["held"] == 2 * KEYS - 1


async def test_who_has_kept_his_slot_passes_where_all_are_given_out(
    closed: Mainspring, connection: Connection, clock: FrozenClock, looked_at: list[str]
) -> None:
    """As somebody does who waits again, after an attempt, for a gate in strict order behind this one."""
    gate = await connection.fetchval(
        "with again as (select held.lane, held.id, held.gate from held order by held.id limit 1)"
        " update slot set run_id = again.id from again where slot.lane = again.lane and slot.gate = again.gate"
        " returning slot.gate"
    )
    await connection.execute("update held set turn = 0 from slot where held.lane = slot.lane and held.id = run_id")
    await Gatekeeper(lanes=LANES, clock=clock).step(connection)

    assert looked_at == [gate]
    assert await places(connection) == {"held": 2 * KEYS - 1, "ready": KEYS + 1, "slot": KEYS}


async def test_a_look_at_more_gates_than_fit_goes_on_where_it_ended(
    closed: Mainspring,
    connection: Connection,
    clock: FrozenClock,
    looked_at: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "LOOKED_AT", 1)
    monkeypatch.setattr(gatekeeper, "MOST_GATES", 2)
    keeper = Gatekeeper(lanes=LANES, clock=clock)
    await connection.execute("delete from ready")
    await connection.execute("delete from slot")
    await keeper.step(connection)
    assert len(looked_at) <= 2 * LANES  # a transaction locks a lane
    while await keeper.step(connection) == 0.0:
        pass

    assert len(set(looked_at)) == KEYS
    assert await places(connection) == {"held": KEYS, "ready": KEYS, "slot": KEYS}


@pytest.mark.parametrize("is_removed", [False, True], ids=["raised", "removed"])
async def test_a_limit_that_is_raised_or_removed_is_in_force_while_the_look_at_all_gates_rests(
    closed: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch, is_removed: bool
) -> None:
    monkeypatch.setattr(gatekeeper, "MOST_GATES", 3)
    keeper = await resting(connection, monkeypatch)
    if is_removed:
        await closed.limits.remove(job="send", key="customer")
    else:
        await closed.limits.set(3, job="send", key="customer")
    while await keeper.step(connection) == 0.0:
        pass

    assert "held" not in await places(connection)


async def test_a_look_during_which_the_database_was_stopped_is_not_followed_by_a_long_rest(
    closed: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    keeper = Gatekeeper(lanes=LANES, clock=clock)
    while await keeper.step(connection) == 0.0:
        pass
    open_gates = limits.open_gates

    async def late(*arguments: Any) -> Any:
        clock.now += 1  # a second in each lane
        return await open_gates(*arguments)

    with monkeypatch.context() as stopped:
        stopped.setattr(limits, "open_gates", late)
        await keeper.step(connection)
    await free_one_slot(connection)
    clock.now += 11
    await keeper.step(connection)

    assert (await places(connection))["held"] == 2 * KEYS - 1


async def test_without_the_look_for_raised_limits_they_would_wait(
    closed: Mainspring, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = await resting(connection, monkeypatch)

    async def blind(_: RaisedLimits, __: Connection) -> list[object]:
        return []

    monkeypatch.setattr(RaisedLimits, "look", blind)
    await closed.limits.set(3, job="send", key="customer")
    while await keeper.step(connection) == 0.0:
        pass

    assert (await places(connection))["held"] == 2 * KEYS


async def test_a_limit_that_is_lowered_or_explained_anew_makes_nobody_look(
    closed: Mainspring, connection: Connection, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await closed.limits.set(2, job="send", key="customer")
    keeper = await resting(connection, monkeypatch)
    looked_at.clear()
    await closed.limits.set(2, job="send", key="customer", reason="as agreed")
    await keeper.step(connection)
    await closed.limits.set(1, job="send", key="customer")
    await keeper.step(connection)

    assert looked_at == []


async def test_gates_of_a_raised_limit_where_somebody_else_is_at_it_are_looked_at_again(
    closed: Mainspring, connection: Connection, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = await resting(connection, monkeypatch)
    somebody = await database.connect("somebody")
    await closed.limits.set(3, job="send", key="customer")
    async with somebody.transaction():
        await somebody.execute("select from lane for no key update")
        assert await keeper.step(connection) == TICK_SECONDS
        assert (await places(connection))["held"] == 2 * KEYS
    await somebody.close()
    while await keeper.step(connection) == 0.0:
        pass

    assert "held" not in await places(connection)
