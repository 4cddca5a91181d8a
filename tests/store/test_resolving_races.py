"""Several who resolve dependencies at once: each child is released once, when all that it waits for is over."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.lifecycle.stepping import Gate, SteppedConnection
from tests.waiting import until

from mainspring.model.actor import DEFAULT_TENANT
from mainspring.model.ids import lane_of, lane_of_key
from mainspring.store import resolving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from uuid import UUID

    from mainspring import Job, Mainspring
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database

LANES, RESOLVERS = 8, 4
PARENTS, CHILDREN = 16, 20
END = "select cancel_runs($1::smallint, array[$2::uuid], 1, 'tester', '', '{}')"
MOST_BOUNDARIES = 60


@pytest.fixture
def note(app: Mainspring) -> Job[..., Any]:
    @app.job
    async def note(what: Any = None) -> Any:
        return what

    return note


@pytest.fixture
async def connections(database: Database) -> AsyncIterator[list[Connection]]:
    found = [await database.connect(f"resolver {number}") for number in range(RESOLVERS)]
    yield found
    for each in found:
        await each.close()


async def waiting(note: Job[..., Any], count: int) -> list[UUID]:
    """Runs in all lanes that are not due yet."""
    return [(await note.options(key=f"parent {number}", delay=3600).submit()).id for number in range(count)]


def of_child(number: int) -> set[int]:
    """For whom it waits."""
    return {number % PARENTS, (number + 5) % PARENTS, (number + 11) % PARENTS}


async def family(note: Job[..., Any]) -> tuple[list[UUID], list[UUID]]:
    parents = await waiting(note, PARENTS)
    assert len({lane_of(each) for each in parents}) > LANES // 2
    options = [note.options(after=[parents[each] for each in of_child(n)], on="end") for n in range(CHILDREN)]
    return parents, [(await each.submit()).id for each in options]


async def resolve_all(connection: Connection, dice: random.Random, may_stop: asyncio.Event) -> int:
    """Look into all lanes in any order, until the last have ended and nothing more comes of it."""
    released = 0
    while True:
        is_last = may_stop.is_set()
        lanes = dice.sample(range(LANES), LANES)
        found = [await resolving.resolve(connection, lane) for lane in lanes]
        released += sum(each.runs for each in found)
        if is_last and not any(each.runs or each.is_busy for each in found):
            return released


async def end_while_others_resolve(
    connection: Connection, connections: list[Connection], parents: Sequence[UUID], dice: random.Random
) -> int:
    """Answers how many were released."""
    have_ended = asyncio.Event()
    resolvers = [asyncio.create_task(resolve_all(each, dice, have_ended)) for each in connections]
    for parent in parents:
        await connection.execute(END, lane_of(parent), parent)
    have_ended.set()
    return sum(await asyncio.gather(*resolvers))


async def resolve_alone(connection: Connection) -> None:
    """What others could not forget, since somebody was at work in a lane of it, is news to whoever looks next."""
    for lane in range(LANES):
        await resolving.resolve(connection, lane)


async def released(connection: Connection) -> list[UUID]:
    return [row["id"] for row in await connection.fetch("select id from ready")]


async def _released_in_two_halves(
    connection: Connection, connections: list[Connection], note: Job[..., Any], seed: int
) -> tuple[set[UUID], set[UUID]]:
    """The first half of the parents ends, then the second. Answers who was released too early, and who never."""
    dice = random.Random(seed)
    parents, children = await family(note)
    order = dice.sample(range(PARENTS), PARENTS)
    first, second = order[: PARENTS // 2], order[PARENTS // 2 :]
    count = await end_while_others_resolve(connection, connections, [parents[n] for n in first], dice)
    expected = {children[n] for n in range(CHILDREN) if of_child(n) <= set(first)}
    too_early = {*await released(connection)} - expected
    count += await end_while_others_resolve(connection, connections, [parents[n] for n in second], dice)
    there = await released(connection)
    assert count == len(there), "each once"
    return too_early, {*children} - {*there}


@pytest.mark.invariant(14)
@pytest.mark.parametrize("seed", range(3))
async def test_of_four_who_resolve_at_once_one_releases_each_run_and_none_is_forgotten(
    connection: Connection, connections: list[Connection], note: Job[..., Any], seed: int
) -> None:
    assert await _released_in_two_halves(connection, connections, note, seed) == (set(), set())
    assert await connection.fetchval("select count(*) from held") == 0
    await resolve_alone(connection)
    assert await connection.fetchval("select count(*) from dependency") == 0


async def test_who_does_not_look_for_what_is_left_releases_runs_too_early(
    connection: Connection, connections: list[Connection], note: Job[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""

    async def nothing(*_: Any) -> set[UUID]:
        return set()

    monkeypatch.setattr(resolving, "_pending", nothing)
    too_early, _ = await _released_in_two_halves(connection, connections, note, seed=1)

    assert too_early


# ── two lanes ───────────────────────────────────────────────────────────────────────────────────────────────────

ONE, OTHER = 1, 2


def key_in(lane: int, name: str) -> str:
    """Runs with this key live in that lane."""
    return next(key for n in range(200) if lane_of_key(DEFAULT_TENANT, key := f"{name} {n}", LANES) == lane)


async def crossed(note: Job[..., Any], connection: Connection) -> list[UUID]:
    """In each of two lanes a run is cancelled for which one of the other lane waits, and for that a third one.

    And it is time to look at all of them again. Answers with those that wait.
    """
    await connection.execute("delete from attempt; delete from idempotency; delete from held; delete from dependency")
    left: list[UUID] = []
    parents = []
    for lane, stranger in ((ONE, OTHER), (OTHER, ONE)):
        parent = await note.options(key=key_in(lane, "parent"), delay=3600).submit()
        child = await note.options(key=key_in(stranger, "child"), after=parent).submit()
        grandchild = await note.options(after=child).submit()
        parents.append(parent.id)
        left += [child.id, grandchild.id]
    for each in parents:
        await connection.execute(END, lane_of(each), each)
    await connection.execute("update dependency set check_at = clock_now() where not is_news")
    return left


async def meet(connection: Connection, others: list[Connection], boundary: int) -> tuple[Gate, Sequence[Any]]:
    """Two resolve at once, the second begun at a boundary of the first; each after news of its own lane."""
    stepped = SteppedConnection(others[0])
    stepped.gate = Gate(stop_at=boundary)
    first = asyncio.ensure_future(resolving.resolve(cast("Connection", stepped), ONE))
    stopped = asyncio.ensure_future(stepped.gate.reached.wait())
    await asyncio.wait({stopped, first}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    second = asyncio.ensure_future(resolving.resolve(others[1], OTHER))
    await until(lambda: second.done() or _is_waiting(connection, others[1]))
    stepped.gate.go_on()
    return stepped.gate, await asyncio.gather(first, second, return_exceptions=True)


async def _is_waiting(connection: Connection, other: Connection) -> bool:
    query = "select exists (select from pg_locks where pid = $1 and not granted)"
    return bool(await connection.fetchval(query, other.get_server_pid()))


@pytest.mark.invariant(14)
async def test_two_who_resolve_in_two_lanes_do_not_wait_in_a_circle(
    connection: Connection, connections: list[Connection], note: Job[..., Any]
) -> None:
    for boundary in range(MOST_BOUNDARIES):
        left = await crossed(note, connection)
        gate, answers = await meet(connection, connections, boundary)
        assert [each for each in answers if isinstance(each, BaseException)] == [], gate.passed
        for _ in range(3):
            await resolve_alone(connection)
        ended = await connection.fetch(
            "select run_id from attempt where state = 'cancelled' and run_id = any ($1)", left
        )
        assert len(ended) == len(left), "all of them cancelled, each once"
        if not gate.reached.is_set():
            return
    pytest.fail("no end of boundaries")
