"""The frozen clock, as Python sees it. What SQL sees is in tests/store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mainspring.clock import instant
from mainspring.errors import InvalidInput
from mainspring.testing import FrozenClock

NOON = datetime(2031, 5, 1, 12, tzinfo=UTC)


def test_it_stands_still() -> None:
    clock = FrozenClock(NOON)

    assert instant(clock) == instant(clock) == NOON


async def test_it_moves_by_a_span_or_by_seconds() -> None:
    clock = FrozenClock(NOON)

    await clock.advance(timedelta(hours=1))
    await clock.advance(0.25)

    assert instant(clock) == NOON + timedelta(hours=1, seconds=0.25)


async def test_monotonic_time_jumps_with_it_and_never_goes_back() -> None:
    clock = FrozenClock(NOON)
    began = clock.monotonic()

    await clock.advance(3600)
    assert clock.monotonic() - began >= 3600

    before = clock.monotonic()
    await clock.set(NOON - timedelta(days=1))
    assert instant(clock) == NOON - timedelta(days=1)
    assert clock.monotonic() >= before


async def test_the_day_on_which_the_clocks_change_is_as_long_as_it_is() -> None:
    midnight = datetime(2031, 3, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    clock = FrozenClock(midnight)
    began = clock.monotonic()

    await clock.set(midnight.replace(day=31))
    assert round((clock.monotonic() - began) / 3600) == 23

    await clock.advance(-timedelta(hours=23))
    assert clock.at == midnight


def test_it_begins_with_the_present_second() -> None:
    assert FrozenClock().at.microsecond == 0


def test_an_instant_needs_a_zone() -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        FrozenClock(datetime(2031, 5, 1))  # noqa: DTZ001
