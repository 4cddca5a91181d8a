"""What `mainspring schedule forecast -o json` says: numbers that mean something."""

from __future__ import annotations

import pytest

from mainspring.cli.schedule_forecast import _rounded


@pytest.mark.parametrize(("count", "told"), [(12.0, 12), (33.333333, 33.3), (0.04, 0), (99.99, 100)])
def test_counts_are_rounded_as_people_see_them(count: float, told: float) -> None:
    assert (_rounded(count), type(_rounded(count))) == (told, type(told))
