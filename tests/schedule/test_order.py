"""Instants and rows of previews are in order, whatever clocks do: missing days, gaps and repeats."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import islice, pairwise, product

import pytest
from tests.schedule.asking import utc

from mainspring.schedule.calendar import Calendar
from mainspring.schedule.preview import preview
from mainspring.schedule.text import parse
from mainspring.schedule.timeline import GapPolicy, RepeatPolicy

JUMPS = [
    ("Pacific/Apia", "2011-12-30T10:00"),  # 30 December 2011 was left out
    ("Pacific/Kwajalein", "1993-08-21T12:00"),  # and 21 August 1993 here
    ("Pacific/Kiritimati", "1994-12-31T10:00"),
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),  # midnight does not exist
]
TEXTS = [
    "30 2 * * *", "0 0 * * *", "0 */5 * * *", "*/20 * * * *", "0,30 0-3 * * *",
    "P1D/2011-01-01T02:30", "P1D/1990-01-01T00:00", "P2D/1990-01-01T12:00", "P1M/1990-01-30T02:30",
    "P1M/1990-01-21T12:00", "PT5H", "PT7M/1990-01-01T00:00",
    "DTSTART:19900101T023000 RRULE:FREQ=DAILY",
    "DTSTART:19900101T000000 RRULE:FREQ=DAILY;BYHOUR=0,2,12,23;BYMINUTE=0,30",
    "DTSTART:19900101T120000 RRULE:FREQ=HOURLY;INTERVAL=6", "DTSTART:19900101T000000 RRULE:FREQ=MINUTELY;INTERVAL=90",
    "DTSTART:19900101T000000 RRULE:FREQ=DAILY RDATE:20111230T120000,19930821T023000,20260329T023000 EXDATE:20111231",
    "DTSTART;TZID=Pacific/Apia:19900101T120000 RRULE:FREQ=DAILY",
    "0 12 * * * | P1D/1990-01-01T12:00 | DTSTART:19900101T000000 RRULE:FREQ=HOURLY;INTERVAL=6",
    "0 * * * * but not 0 0 * * *",
    "0 * * * * not=nights", "0 * * * * blackout=nights:move",
]  # fmt: skip
NIGHTS = {"nights": Calendar(name="nights", windows=((time(0), time(6)),))}
POLICIES = list(product([each for each in GapPolicy if each is not GapPolicy.RUN_AFTER], RepeatPolicy))
BEFORE = timedelta(hours=50)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("zone", "jump"), JUMPS)
def test_instants_are_strictly_increasing_and_the_same_on_the_way_back(text: str, zone: str, jump: str) -> None:
    for gap, repeat in POLICIES:
        schedule = parse(text, zone=zone, gap=gap, repeat=repeat, calendars=NIGHTS)
        begin, end = utc(jump) - BEFORE, utc(jump) + BEFORE
        forth = [each.nominal_at for each in schedule.between(begin, end)]
        back: list[datetime] = []
        at = schedule.prev_before(end)
        while at is not None and at.nominal_at >= begin:
            back.append(at.nominal_at)
            at = schedule.prev_before(at.nominal_at)

        assert all(one < other for one, other in pairwise(forth)), (gap, repeat)
        assert back[::-1] == forth, (gap, repeat)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(("zone", "jump"), JUMPS)
def test_rows_of_a_preview_are_in_order_of_time_and_of_the_clock(text: str, zone: str, jump: str) -> None:
    for gap in GapPolicy:
        schedule = parse(text, zone=zone, gap=gap, calendars=NIGHTS)
        rows = preview(schedule, after=utc(jump) - timedelta(hours=26), count=24).entries

        places = [(row.nominal_at, row.local_at.replace(tzinfo=None)) for row in rows]
        assert places == sorted(places)
        fired = [row.nominal_at for row in rows if row.fires]
        assert fired == [
            each.nominal_at for each in islice(schedule.between(fired[0], datetime(2400, 1, 1, tzinfo=UTC)), 24)
        ]


def test_the_missing_day_is_told_before_the_day_after_it() -> None:
    schedule = parse("DTSTART:20110101T000000 RRULE:FREQ=HOURLY;INTERVAL=12 zone=Pacific/Apia gap=skip")

    rows = preview(schedule, after=utc("2011-12-29T12:00"), count=3).entries
    assert [(f"{row.local_at:%d %H:%M}", row.fires) for row in rows] == [
        ("29 12:00", True),
        ("30 00:00", False),
        ("31 00:00", True),
        ("31 12:00", True),
    ]
