"""An application on a fresh database whose time stands still."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from mainspring import Mainspring
from mainspring.testing import FrozenClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NEW_YEAR = datetime(2031, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NEW_YEAR)


@pytest.fixture
async def frozen_app(url: str, clock: FrozenClock) -> AsyncIterator[Mainspring]:
    app = Mainspring(url, clock=clock, submitted_by="tester")
    await clock.freeze(app)
    yield app
    await app.close()
