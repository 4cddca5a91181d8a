"""What surrounds a single attempt: opened before it, closed after it, and no part of what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mainspring import Mainspring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mainspring.worker.environment import Surroundings


@pytest.fixture
def app() -> Mainspring:
    return Mainspring("postgresql://nowhere.invalid/none")


@pytest.fixture
def sticky(app: Mainspring) -> Any:
    @app.resource
    async def sticky() -> AsyncIterator[int]:
        yield 1
        raise RuntimeError("does not close")

    return sticky


async def test_an_attempt_that_did_its_work_has_done_it_although_a_resource_does_not_close(
    app: Mainspring, sticky: Any
) -> None:
    async def call(surroundings: Surroundings) -> str:
        return "done"

    assert await app.registry.environment.around_one([sticky], call) == "done"


async def test_an_attempt_fails_by_its_own_error_although_a_resource_does_not_close(
    app: Mainspring, sticky: Any
) -> None:
    async def call(surroundings: Surroundings) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await app.registry.environment.around_one([sticky], call)


async def test_an_attempt_whose_resource_does_not_open_fails_by_that(app: Mainspring) -> None:
    @app.resource
    async def closed() -> AsyncIterator[int]:
        raise RuntimeError("does not open")
        yield 1

    async def call(surroundings: Surroundings) -> None:
        raise AssertionError("it must not begin")

    with pytest.raises(RuntimeError, match="does not open"):
        await app.registry.environment.around_one([closed], call)
