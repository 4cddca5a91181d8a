"""One run, or the runs of one schedule, are delivered otherwise than the job says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring, RetryPolicy, State
from mainspring.errors import IdempotencyConflict, InvalidInput
from mainspring.model.line import Delivery
from mainspring.testing import run_until_idle

from .scheduling import HOUR, Firing, remind, run_ids

if TYPE_CHECKING:
    from mainspring.store.connection import Connection
    from mainspring.testing import FrozenClock


@dataclass
class Item:
    number: int = 0


async def one(number: int = 0) -> None: ...


async def many(items: list[Item]) -> None: ...


async def test_a_run_that_is_delivered_at_most_once_is_not_retried(frozen_app: Mainspring) -> None:
    calls = []

    @frozen_app.job(retry=RetryPolicy(max_attempts=5))
    async def call(number: int) -> None:
        calls.append(number)
        raise ConnectionError

    once = await call.options(delivery="at_most_once").submit(1)
    again = await call.submit(2)
    await run_until_idle(frozen_app)

    assert ((await once.find()).state, (await again.find()).state) == (State.DEAD, State.SCHEDULED)
    assert (await once.find()).delivery is Delivery.AT_MOST_ONCE
    assert sorted(calls) == [1, 2]


async def test_the_runs_of_a_schedule_are_delivered_as_it_says(
    frozen_app: Mainspring, clock: FrozenClock, connection: Connection
) -> None:
    job = remind(frozen_app)
    made = await job.options(delivery=Delivery.AT_MOST_ONCE).scheduled("hourly", "0 * * * *").create(1)
    await clock.advance(HOUR)
    await Firing(connection, clock).fire()

    (run_id,) = await run_ids(frozen_app)
    assert made.options == {"delivery": "at_most_once"}
    assert (await frozen_app.runs.find(run_id)).delivery is Delivery.AT_MOST_ONCE
    updated = await frozen_app.schedules.update("hourly", delivery=None)
    assert updated.options == {}


async def test_it_is_part_of_what_a_key_stands_for(frozen_app: Mainspring) -> None:
    job = remind(frozen_app)
    first = await job.options(key="a", delivery="at_most_once").submit(1)

    assert (await job.options(key="a", delivery="at_most_once").submit(1)).id == first.id
    with pytest.raises(IdempotencyConflict):
        await job.options(key="a").submit(1)


@pytest.mark.parametrize(
    ("own", "given", "code"),
    [
        ({}, "transactional", "delivery-of-handler"),
        ({"delivery": "transactional"}, "at_most_once", "delivery-of-handler"),
        ({"chunk": 10}, "at_most_once", "chunk-delivery"),
        ({}, "twice", "invalid-delivery"),
    ],
)
async def test_what_the_handler_cannot_do_is_refused(
    frozen_app: Mainspring, own: dict[str, Any], given: str, code: str
) -> None:
    job: Any = frozen_app.job(name="work", **own)
    work = job(many if "chunk" in own else one)

    with pytest.raises(InvalidInput) as refused:
        work.options(delivery=given)
    assert (refused.value.code, refused.value.fields["field"]) == (code, "delivery")
    with pytest.raises(InvalidInput) as by_name:
        await frozen_app.jobs.submit("work", {}, delivery=given)
    assert by_name.value.code == code
