"""What isolated runs take and return crosses the border between processes as what it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.system import typed_app
from tests.values import ORDER

from mainspring import wiring
from mainspring.model.actor import Tenant
from mainspring.worker.isolation.remote_error import RemoteError

from .test_isolation import Bench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench(typed_app)
    bench.isolation = wiring.isolation(
        "tests.system.typed_app:app", wiring.DatabaseLocation(url="postgresql://nowhere.invalid/none")
    )
    yield bench
    bench.isolation.close()


@pytest.mark.parametrize("job", [typed_app.load, typed_app.load_async], ids=lambda job: job.name)
async def test_models_and_paths_cross_the_border(bench: Bench, job: Any) -> None:
    arguments = msgspec.json.decode(job.handler.arguments.encode((ORDER, {Path("x")}), {}))

    answer = await bench.run(job.name, **arguments)

    returns = job.handler.returns
    assert returns.decode(returns.encode(answer)) == {Path("x"): ORDER}


async def test_a_result_that_was_not_promised_is_not_tried_again(bench: Bench) -> None:
    with pytest.raises(RemoteError, match="forget: the result does not fit") as caught:
        await bench.run("forget")

    assert caught.value.is_hopeless
    assert caught.value.code == "invalid-result"


async def test_arguments_that_do_not_fit_are_not_tried_again(bench: Bench) -> None:
    with pytest.raises(RemoteError, match="load: argument 'order'") as caught:
        await bench.run("load", order="a table", paths=[])

    assert caught.value.is_hopeless
    assert caught.value.code == "unfit-arguments"


async def test_an_isolated_run_acts_for_its_tenant(bench: Bench) -> None:
    work = bench.work("whose")
    work.tenant = Tenant(7, "acme")

    assert await bench.perform(work) == ["acme", 7, "acme"]
