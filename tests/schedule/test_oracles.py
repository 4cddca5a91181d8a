"""Our cron against independent programs, around every kind of jump there is; and a sample of the full sweep."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache

import pytest
from tests.schedule.tzif import listed_jumps
from verification.corpus import FIRST
from verification.oracles import ORACLES, Oracle
from verification.schedules import Window, check_windows, distinct_jumps, distinct_zones

from mainspring.schedule.zones import NO_SHIFT, segments_of, zone_named

YEARS = (*range(1990, 2000), 2004, 2007, 2010, 2011, 2012, 2016, 2018, 2020, 2021, 2026, 2037)


@cache
def jumps() -> list[Window]:
    return distinct_jumps(distinct_zones(), YEARS)


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
def test_we_agree_around_every_kind_of_jump(oracle: Oracle) -> None:
    report = check_windows(jumps(), FIRST, [oracle])

    assert len(jumps()) > 30
    assert not [str(each) for each in report.unexplained]


def test_a_sample_of_the_sweep_finds_nothing_unexplained() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "verification", "schedules", "--quick", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )

    report = json.loads(done.stdout.splitlines()[-1])
    assert report["unexplained"] == 0
    assert report["zones"] > 12


def test_every_jump_that_tzdata_lists_is_a_segment() -> None:
    """zoneinfo does not tell its transitions, so we search for them; here they are read from the files themselves."""

    for name in distinct_zones()[::5]:
        listed = listed_jumps(name, 1970, 2037)
        found = {
            (segment.start, segment.shift_in)
            for year in range(1970, 2037)
            for segment in segments_of(zone_named(name), year)
            if segment.shift_in != NO_SHIFT
        }
        last = max((at for at, _ in listed), default=None)
        assert {each for each in found if last is None or each[0] <= last} == listed, name
