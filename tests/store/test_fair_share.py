"""Fair share: nobody's backlog delays another customer's runs by more than its share."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mainspring import Limit, Mainspring, RetryPolicy
from mainspring.errors import InvalidInput
from mainspring.model.admission import Gate
from mainspring.model.concurrency import home_of_gate
from mainspring.model.fair_share import LEAST_IN_LINE
from mainspring.store import admission
from mainspring.store.connection import transaction
from mainspring.store.statements import load
from mainspring.testing import run_until_idle

from .test_limits import LANES, Crowd, crowd, limited, places, release

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.store.database import Database
    from mainspring.testing import FrozenClock

__all__ = ["crowd"]  # the fixture


async def customers_in_line(connection: Connection) -> Counter[str]:
    rows = await connection.fetch("select payload from ready")
    return Counter(msgspec.json.decode(row["payload"])["customer"] for row in rows)


async def submit(job: Any, **counts: int) -> None:
    """So many runs of each customer, one customer after the other."""
    for customer, count in counts.items():
        await job.submit_many([{"customer": customer, "number": number} for number in range(count)])


async def test_slots_go_in_turns_to_those_who_share_a_limit(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(6, share="customer"))
    await submit(send, big=100)
    await release(connection, clock)
    assert await customers_in_line(connection) == {"big": 6}

    await submit(send, small=5, tiny=1)
    await release(connection, clock)
    await connection.execute("delete from ready; delete from slot")  # as if those six had ended
    await release(connection, clock)

    assert await customers_in_line(connection) in ({"big": 3, "small": 2, "tiny": 1}, {"big": 2, "small": 3, "tiny": 1})


async def test_who_has_fewest_slots_gets_the_next_one(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(6, share="customer"))
    await submit(send, big=100)
    await release(connection, clock)
    await submit(send, small=5)
    await release(connection, clock)
    await connection.execute(  # two of the six end
        "with ended as (delete from ready where id in (select id from ready order by id limit 2) returning id)"
        " delete from slot using ended where slot.run_id = ended.id"
    )
    await release(connection, clock)

    assert await customers_in_line(connection) == {"big": 4, "small": 2}


async def test_no_more_come_in_line_than_workers_take_in_a_moment(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(share="customer"))
    await submit(send, big=200)
    await release(connection, clock)
    await submit(send, small=10)
    await release(connection, clock)
    assert await customers_in_line(connection) == {"big": LEAST_IN_LINE}

    await connection.execute("delete from ready where id in (select id from ready order by id limit 20)")
    await clock.advance(1)
    await release(connection, clock)

    in_line = await customers_in_line(connection)
    assert in_line["small"] == 10  # its share of what there was room for, and there are no more
    assert LEAST_IN_LINE <= in_line.total() <= (LEAST_IN_LINE + 2 * 20) / 2  # at most half way to twice what was taken


async def test_tokens_go_in_turns(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(rate="1/minute", burst=8, share="customer"))
    await submit(send, big=100)
    await release(connection, clock)
    await submit(send, small=100)
    await release(connection, clock)
    await connection.execute("delete from bucket")
    before = await customers_in_line(connection)
    await release(connection, clock)

    assert before["small"] == 0
    assert (await customers_in_line(connection))["small"] == 4


async def test_all_runs_that_take_turns_are_executed(app: Mainspring, connection: Connection, crowd: Crowd) -> None:
    crowd.may_end.set()
    send = limited(app, crowd, Limit(share="customer"))
    await submit(send, big=300)
    await submit(send, small=10)
    await run_until_idle(app)

    assert len(crowd.order) == 310
    assert await places(connection) == {}


async def test_a_removed_share_lets_everybody_pass(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(2, share="customer"))
    await submit(send, big=10, small=10)
    await frozen_app.limits.remove(job="send")
    await release(connection, clock)

    assert (await places(connection))["ready"] == 20


async def test_another_share_is_another_limit(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(2))
    await submit(send, big=10, small=10)
    await release(connection, clock)
    await frozen_app.limits.set(4, job="send", share="customer")
    status, values = await frozen_app.limits.show(job="send")

    assert (status.most, status.share, status.waiting) == (4, "customer", 0)
    assert list(values) == []


async def test_a_limit_that_is_shared_shows_whose_runs_wait(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(2, share="customer"))
    await submit(send, big=10, small=3)
    await release(connection, clock)
    status, values = await frozen_app.limits.show(job="send")

    assert (status.holding, status.waiting) == (2, 11)
    assert {value.value: len(value.holders) + value.waiting for value in values} == {"big": 10, "small": 3}


async def test_more_values_than_fit_into_one_look_all_have_their_turn(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.sharing.MOST_VALUES", 3)
    send = limited(frozen_app, crowd, Limit(3, share="customer"))
    await send.submit_many([{"customer": f"c{n % 10}"} for n in range(40)])
    seen: set[str] = set()
    for _ in range(4):
        await release(connection, clock)
        seen |= set(await customers_in_line(connection))
        await connection.execute("delete from ready; delete from slot")

    assert len(seen) == 10


async def test_two_who_release_at_once_exceed_no_shared_limit(
    frozen_app: Mainspring, connection: Connection, database: Database, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(5, share="customer"))
    await submit(send, big=30, small=30)
    await (await frozen_app.services()).submitter.until_admitted()
    await connection.execute("delete from ready; delete from slot")
    rule_id = await connection.fetchval("select id from limit_rule")
    gate = f"{rule_id}="
    other = await database.connect("other")
    async with transaction(other):
        await load("limits/lock_gates").fetch(other, lane=home_of_gate(gate, LANES))
        found = await admission.admit(connection, [gate], LANES)
        assert (found.runs, list(found.later)) == (0, [gate])
    await asyncio.gather(*(admission.admit(each, [gate], LANES) for each in (connection, other)))
    await admission.admit(connection, [gate], LANES)
    await other.close()

    assert await connection.fetchval("select count(*) from slot") == 5


async def test_explaining_says_whose_turn_it_is_not(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    send = limited(frozen_app, crowd, Limit(share="customer"))
    await submit(send, big=50)
    await release(connection, clock)
    await clock.advance(1)
    last = await send.submit(customer="big")
    found = await frozen_app.runs.explain(last.id)

    assert found.gate is Gate.SHARE
    assert found.says == (
        "runs of job send take turns by customer, and it is not yet the turn of customer big;"
        " 18 of customer big come before it"
    )
    assert found.remedy == "mainspring limit show --job send"


async def test_what_cannot_be_shared_is_refused(frozen_app: Mainspring, crowd: Crowd) -> None:
    await limited(frozen_app, crowd, Limit(1)).submit()
    wrong: dict[str, dict[str, Any]] = {
        "share-and-key": {"most": 1, "share": "customer", "key": "region"},
        "share-and-order": {"most": 1, "share": "customer", "order": "strict"},
        "invalid-limit-share": {"share": "a()"},
    }
    for code, values in wrong.items():
        with pytest.raises(InvalidInput) as refusal:
            await frozen_app.limits.set(job="send", **values)
        assert (refusal.value.code, refusal.value.fields["field"]) == (code, "share")


# ── whom nothing may keep waiting for ever ──────────────────────────────────────────────────────────────────────


async def test_a_run_that_kept_its_slot_needs_no_other(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    """Else it would wait for those that wait for the strict place that it has kept, too."""
    order: list[str] = []
    waiting = [True]

    @frozen_app.job(
        queue="serial",
        limit=Limit(2, share="customer"),
        retry=RetryPolicy(max_attempts=2, first_delay=timedelta(minutes=1), jitter="none"),
    )
    async def send(customer: str) -> None:
        order.append(customer)
        if waiting and customer == "a":
            waiting.clear()
            raise ConnectionError

    await send.submit("a")
    await frozen_app.limits.set(1, queue="serial", order="strict")
    await run_until_idle(frozen_app)
    for customer in "bcdefgh":
        await send.submit(customer)
    await release(connection, clock)
    assert (await places(connection))["slot"] <= 3  # two of the share, and the strict one
    await clock.advance(120)
    await run_until_idle(frozen_app)

    assert sorted(order) == ["a", "a", *"bcdefgh"]
    assert await places(connection) == {}


async def test_runs_without_a_share_in_the_same_line_keep_nobody_waiting(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd
) -> None:
    @frozen_app.job
    async def bulk() -> None: ...

    await bulk.submit_many([{}] * 200)
    send = limited(frozen_app, crowd, Limit(share="customer"))
    await submit(send, small=5)
    for _ in range(3):  # what workers take of the others is replaced
        await clock.advance(0.1)
        await release(connection, clock)

    assert await connection.fetchval("select count(*) from held") == 0


async def test_values_that_cannot_pass_let_others_pass(
    frozen_app: Mainspring, connection: Connection, clock: FrozenClock, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mainspring.store.sharing.MOST_VALUES", 3)
    send = limited(frozen_app, crowd, Limit(5, share="customer"))

    @frozen_app.job(queue="slow")
    async def other() -> None: ...

    await other.submit()
    await send.options(queue="slow").submit_many([{"customer": f"a{number}"} for number in range(10)])
    await frozen_app.queues.pause("slow")
    await release(connection, clock)
    await connection.execute("delete from ready; delete from slot")  # as if all that had passed before were over
    await submit(send, z0=1, z1=1)
    await release(connection, clock)

    assert set(await customers_in_line(connection)) == {"z0", "z1"}


@pytest.mark.parametrize("waiting", [200, 20_000])
async def test_an_application_closes_although_runs_wait_for_workers(
    url: str, connection: Connection, waiting: int
) -> None:
    async with Mainspring(url) as app:

        @app.job(limit=Limit(share="customer"))
        async def send(customer: str) -> None: ...

        await send.submit_many([{"customer": "big"}] * waiting)
    left = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    before = await connection.fetchval("select count(*) from ready")

    assert await connection.fetchval(left + " and application_name like '%admit%'") == 0
    assert before == await connection.fetchval("select count(*) from ready") > 0
