"""Which place a run has among those that wait with it: the one in which it is taken, also of a batch."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest

from mainspring import Limit, Mainspring
from mainspring.model.admission import Gate
from mainspring.model.ids import lane_of
from mainspring.store import leases

from .test_explaining import worker
from .test_limits import SUBMITTING, Crowd, limited, release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mainspring import Handle
    from mainspring.model.admission import Explanation
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@pytest.fixture
def crowd() -> Crowd:
    SUBMITTING.clear()
    return Crowd()


async def explained(handles: Sequence[Handle[None]]) -> dict[UUID, Explanation]:
    return {handle.id: await handle.explain() for handle in handles}


async def held(handles: Sequence[Handle[None]]) -> list[Handle[None]]:
    return [handle for handle in handles if (await handle.find()).state == "held"]


def in_order(found: dict[UUID, Explanation]) -> list[UUID]:
    """As they say; no two say the same."""
    by_place = {each.ahead: run_id for run_id, each in found.items()}
    assert sorted(place for place in by_place if place is not None) == list(range(len(found)))
    return [by_place[place] for place in range(len(found))]


async def claim_one(connection: Connection, worker_id: UUID, lane: int, line: int) -> UUID:
    (row,) = await leases.claim(
        connection,
        lane=lane,
        line=line,
        priorities=range(10),
        fronts=[0] * 10,
        count=1,
        lease_id=uuid4(),
        worker_id=worker_id,
    )
    run_id: UUID = row["id"]
    return run_id


async def test_runs_of_a_batch_in_line_are_claimed_in_the_places_that_they_say(
    frozen_app: Mainspring, connection: Connection
) -> None:
    """Of two jobs, which share the line and became ready together: claims take those of the job that is older first."""

    @frozen_app.job(queue="mail")
    async def send(n: int) -> None: ...

    @frozen_app.job(queue="mail")
    async def post(n: int) -> None: ...

    batches = [await job.submit_many([{"n": n} for n in range(15)]) for job in (post, send)]
    # Each lane has got one batch, and so one job; mix them.
    await connection.execute(
        "update ready set rank = 1000, job_id = (select case when ascii(right(ready.id::text, 1)) % 2 = 0"
        " then min(job.id) else max(job.id) end from job)"
    )
    order = in_order(await explained([handle for batch in batches for handle in batch]))
    worker_id = await worker(connection, "send", "post")
    line = await connection.fetchval("select line_id from ready limit 1")

    for lane in {lane_of(run_id) for run_id in order}:
        own = [run_id for run_id in order if lane_of(run_id) == lane]
        assert [await claim_one(connection, worker_id, lane, line) for _ in own] == own


@pytest.mark.parametrize("order", ["priority", "strict"])
async def test_runs_of_a_batch_pass_their_limit_in_the_places_that_they_say(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, order: str
) -> None:
    send = limited(frozen_app, crowd, Limit(1, key="customer", order=order))
    handles = await send.submit_many([{"customer": "a", "number": number} for number in range(6)])
    await release(connection, clock)
    waiting = in_order(await explained(await held(handles)))
    assert len(waiting) == 5

    released = []
    for _ in waiting:
        await connection.execute("delete from ready")
        await connection.execute("delete from slot")
        await release(connection, clock)
        released.append(await connection.fetchval("select id from ready"))

    assert released == waiting


async def test_runs_that_wait_for_one_limit_in_several_lanes_have_places_of_their_own(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, [Limit(5, key="customer"), Limit(1)])
    handles = await send.submit_many([{"customer": f"c{number}"} for number in range(12)])
    await release(connection, clock)
    await connection.execute("update held set turn = 1000")
    waiting = await held(handles)
    assert len({lane_of(handle.id) for handle in waiting}) > 1

    assert len(in_order(await explained(waiting))) == 11


async def test_each_run_of_a_batch_is_told_the_instant_of_its_own_token(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(rate="2/s"))
    handles = await send.submit_many([{"number": number} for number in range(20)])
    await release(connection, clock)

    found = await explained(await held(handles))
    order = in_order(found)
    instants = [found[run_id].earliest_at for run_id in order]

    assert {each.gate for each in found.values()} == {Gate.RATE}
    slack = timedelta(seconds=0.05)  # what the bucket has beyond its burst
    assert instants == [found[order[0]].at + timedelta(seconds=0.5 * (n + 1)) - slack for n in range(19)]


async def test_no_more_is_counted_than_the_bound_says_however_many_have_the_same_place(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.control.explaining.COUNTED", 4)
    send = limited(frozen_app, crowd, Limit(1, key="customer"))
    handles = await send.submit_many([{"number": number} for number in range(10)])
    await release(connection, clock)

    found = await explained(await held(handles))

    assert sorted((each.ahead, each.ahead_is_exact) for each in found.values()) == [
        *[(place, True) for place in range(4)],
        *[(4, False)] * 5,
    ]
