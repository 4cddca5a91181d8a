"""For pytest: installed with Mainspring, active when one of its fixtures is used.

[tool.pytest.ini_options]
mainspring_app = "shop.jobs:app"          # the application under test

async def test_an_order_is_confirmed(mainspring_app, mainspring_clock): ...
"""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mainspring import Mainspring
    from mainspring.testing import FrozenClock
    from mainspring.testing.store import TestStore


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("mainspring_app", "module:attribute of the Mainspring application under test", default="")


@pytest.fixture(scope="session")
def mainspring_store() -> Iterator[TestStore]:
    """A private PostgreSQL for this test process. Those of test processes that were killed are swept."""
    from mainspring.testing.scratch import PREFIX, claim_scratch, scratch_root, sweep_scratch
    from mainspring.testing.store import TestStore

    sweep_scratch(scratch_root())
    directory = scratch_root() / f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with closing(claim_scratch(directory)):
        store = TestStore(directory / "data")
        yield store
        store.close()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def mainspring_url(mainspring_store: TestStore) -> str:
    """The URL of a store with nothing in it."""
    mainspring_store.clean()
    return mainspring_store.url


@pytest.fixture
def mainspring_clock() -> FrozenClock:
    """A clock that stands still until the test moves it."""
    from mainspring.testing import FrozenClock

    return FrozenClock()


@pytest.fixture
def mainspring_app(
    request: pytest.FixtureRequest, mainspring_store: TestStore, mainspring_url: str, mainspring_clock: FrozenClock
) -> Iterator[Mainspring]:
    """The application named by the ini option `mainspring_app`, on an empty store, with the frozen clock."""
    from mainspring.app.loading import load_app

    name = request.config.getini("mainspring_app")
    if not name:
        raise pytest.UsageError(
            "Say which application is under test: mainspring_app = module:attribute, in pytest's ini."
        )
    app = load_app(name)
    location, clock = app.used_location, app.clock
    mainspring_store.lend(app, mainspring_clock)
    yield app
    app.use(location)
    app.clock = clock
