"""Arguments that were stored and do not fit the code any more: their run is a dead letter at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mainspring import Mainspring, RetryPolicy, State
from mainspring.errors import InvalidArguments, RunFailed
from mainspring.testing import run_until_idle, travel

from .scheduling import HOUR, NEW_YEAR

if TYPE_CHECKING:
    from mainspring.testing import FrozenClock

PATIENT = RetryPolicy(max_attempts=5, first_delay=HOUR)


@pytest.fixture
def newer(frozen_app: Mainspring, url: str, clock: FrozenClock) -> Mainspring:
    """The same application, whose job takes something else by now."""
    app = Mainspring(url, clock=clock, submitted_by="newer")

    @frozen_app.job(name="remind", retry=PATIENT)
    async def remind(customer: int) -> None: ...

    @app.job(name="remind", retry=PATIENT)
    async def remind_by_name(customer: str) -> None: ...

    return app


async def test_a_run_is_dead_at_once(frozen_app: Mainspring, newer: Mainspring) -> None:
    run_id = (await frozen_app.jobs.submit("remind", {"customer": 42})).id
    async with newer:
        await run_until_idle(newer)
        with pytest.raises(RunFailed, match="argument 'customer' does not fit") as refused:
            await newer.runs.result(run_id)

    assert (refused.value.error["type"], refused.value.error["code"]) == ("UnfitArguments", "unfit-arguments")
    assert len((await frozen_app.runs.find(run_id)).attempts) == 1


async def test_an_occurrence_is_dead_at_once(frozen_app: Mainspring, newer: Mainspring) -> None:
    await frozen_app.schedules.create("hourly", "remind", "0 * * * *", {"customer": 42})
    async with newer:
        fired = await travel(newer, to=NEW_YEAR + HOUR)

    assert [each.state for each in fired] == [State.DEAD]


async def test_what_a_handler_is_refused_itself_is_retried(frozen_app: Mainspring) -> None:
    """Control: the arguments of what it submits are not its own."""

    @frozen_app.job(retry=PATIENT)
    async def pass_on() -> None:
        raise InvalidArguments("of another job")

    handle = await pass_on.submit()
    await run_until_idle(frozen_app)

    assert (await handle.find()).state is State.SCHEDULED
