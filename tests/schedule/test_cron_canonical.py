"""What is stored of a cron expression fires exactly as what was written, for every job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schedule.asking import walls

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse

quick = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def _item(least: int, most: int, *more: str) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    step = st.integers(1, most - least)
    low = st.integers(least, (least + most) // 2)
    high = st.integers((least + most) // 2 + 1, most)
    plain = [
        st.sampled_from(["*", "H", *more]),
        number.map(str),
        st.builds("{}-{}".format, low, high),
        st.builds("*/{}".format, step),
        st.builds("H/{}".format, st.integers(1, min(20, most - least))),
        st.builds("H({}-{})".format, low, high),
        st.builds("H({}-{})/2".format, low, high),
    ]
    return st.one_of(plain)


def _field(least: int, most: int, *more: str) -> st.SearchStrategy[str]:
    return st.lists(_item(least, most, *more), min_size=1, max_size=3).map(",".join)


_minute, _hour = _field(0, 59), _field(0, 23)
_day = _field(1, 31, "L", "L-3", "LW", "L-2W", "15W", "1-31")
_month, _weekday = _field(1, 12, "MAY", "JUNE"), _field(0, 7, "5L", "2#1", "FRIDAY", "0-6", "SAT-MON")
_year = st.sampled_from(["*", "2026", "2026-2028", "2026,2030", "2025/2"])
expressions = st.one_of(
    st.builds("{} {} {} {} {}".format, _minute, _hour, _day, _month, _weekday),
    st.builds("{} {} {} {} {} {}".format, _minute, _minute, _hour, _day, _month, _weekday),
    st.builds("0 {} {} {} {} {} {}".format, _minute, _hour, _day, _month, _weekday, _year),
)


def fires(cron: Cron, job: str) -> list[datetime]:
    """The first instants, and one of each of the following days, in a zone whose clock jumps."""
    schedule = Schedule(when=cron, zone="Europe/Berlin")
    found = [each.nominal_at for each in islice(schedule.between(BEGIN, BEGIN + timedelta(days=800), job=job), 40)]
    for day in range(0, 400, 13):
        after = schedule.next_after(BEGIN + timedelta(days=day), job=job)
        found.append(BEGIN if after is None else after.nominal_at)
    return found


@quick
@given(expressions, st.lists(st.text(max_size=6), min_size=1, max_size=2))
def test_what_is_stored_fires_as_what_was_written(text: str, jobs: list[str]) -> None:
    written = Cron.parse(text)
    stored = Cron.parse(written.text)

    assert stored.text == written.text
    for job in jobs:
        assert fires(stored, job) == fires(written, job), (text, written.text)


@quick
@given(expressions, st.text(max_size=6))
def test_a_sentence_can_be_made_of_every_expression(text: str, job: str) -> None:
    schedule = Schedule(when=Cron.parse(text))

    assert schedule.words.endswith("UTC.")
    if schedule.never_fires(job=job) is None:
        assert schedule.next_after(datetime(1900, 1, 1, tzinfo=UTC), job=job) is not None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("*/15,H * * * *", "*/15,H * * * *"),
        ("H/20,5 * * * *", "H/20,5 * * * *"),
        ("5,H/20 * * * *", "5,H/20 * * * *"),  # no star in front
        ("H/20,H,*/30 * * * *", "H/20,0,30,H * * * *"),
        ("0 0 L,H/2 * 1", "0 0 L,H/2 * 1"),  # no star in front: the last day, or a Monday
        ("*,H * * * *", "* * * * *"),
        ("0 H/2 * * *", "0 H/2 * * *"),  # no span of time with an anchor
        ("0 0 * */2,H *", "0 0 * 1-11/2,H *"),
        ("0 9 1-31 * MON", "0 9 1-31 * 1"),
        ("0 9 l-3w * *", "0 9 L-3W * *"),
        ("0 9 * january-march monday,Friday", "0 9 * 1-3 1,5"),
        ("0 9 * * FRIDAYL", "0 9 * * 5L"),
        ("0 9 * * tuesday#1", "0 9 * * 2#1"),
        ("0 0 9 * * * *", "0 9 * * *"),
        ("0 0 9 * * * 1970-2199", "0 9 * * *"),
        ("0 0 9 * * * 2026", "0 0 9 * * * 2026"),
        ("0 0 9 * * * 2026,2027,2028", "0 0 9 * * * 2026-2028"),
        ("0 0 9 ? * MON 2026", "0 0 9 * * 1 2026"),
        ("TZ=Europe/Berlin 0 9 * * *", "0 9 * * * zone=Europe/Berlin"),
        ("CRON_TZ=Europe/Berlin 0 9 * * *", "0 9 * * * zone=Europe/Berlin"),
        ("CRON_TZ=Europe/Berlin @daily spread=5m", "0 0 * * * zone=Europe/Berlin spread=PT5M"),
        ("0 9 * * * Europe/Berlin", "0 9 * * * zone=Europe/Berlin"),
        ("0 0 9 * * MON Europe/Berlin", "0 9 * * 1 zone=Europe/Berlin"),
        ("0 9 * * * UTC", "0 9 * * *"),
        ("TZ=UTC 0 9 * * * UTC zone=UTC", "0 9 * * *"),
    ],
)
def test_the_stored_form(text: str, canonical: str) -> None:
    schedule = parse(text)

    assert schedule.text == canonical
    assert parse(canonical) == schedule


def test_a_zone_in_the_text_is_meant_before_the_given_one() -> None:
    assert parse("TZ=Asia/Tokyo 0 9 * * *", zone="Europe/Berlin").zone == "Asia/Tokyo"
    assert parse("0 9 * * *", zone="Europe/Berlin").zone == "Europe/Berlin"


@pytest.mark.parametrize(
    "text",
    [
        "TZ=Europe/Berlin 0 9 * * * zone=UTC",
        "TZ=Europe/Berlin 0 9 * * * Asia/Tokyo",
        "0 9 * * * Europe/Berlin zone=Asia/Tokyo",
        "TZ=Europe/Berlin every day at 09:00 in Asia/Tokyo",
    ],
)
def test_two_zones_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"it names two zones, .* and ") as caught:
        parse(text)

    assert caught.value.code == "contradictory-zones"


def test_a_zone_belongs_to_the_whole() -> None:
    with pytest.raises(InvalidSchedule, match="belong to the whole"):
        parse("0 9 * * * | TZ=UTC 0 10 * * *")
    with pytest.raises(InvalidSchedule, match="'Europe/Berln'") as caught:
        parse("0 9 * * * Europe/Berln")
    assert caught.value.code == "unknown-zone"


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("0 0 L-3W * *", "2026-02-01", "2026-02-25"),  # a Wednesday
        ("0 0 L-3W * *", "2026-05-01", "2026-05-28"),  # a Thursday
        ("0 0 L-2W * *", "2026-03-01", "2026-03-30"),  # the 29th is a Sunday
        ("0 0 L-3W * *", "2026-10-01", "2026-10-28"),
        ("0 0 L-30W * *", "2026-08-01", "2026-08-03"),  # the 1st is a Saturday: not into July
        ("0 0 L-30W * *", "2026-02-01", "2026-03-02"),  # February has no such day; the 1st of March is a Sunday
    ],
)
def test_the_weekday_nearest_to_a_day_before_the_last(text: str, after: str, expected: str) -> None:
    assert walls(parse(text), after, "2027-01-01")[0] == f"{expected} 00:00"


def test_years_are_kept_to_in_both_directions() -> None:
    schedule = parse("0 0 9 24 12 * 2026,2030")

    assert walls(schedule, "1990-01-01", "2300-01-01") == ["2026-12-24 09:00", "2030-12-24 09:00"]
    last = schedule.prev_before(datetime(2499, 1, 1, tzinfo=UTC))
    assert last is not None
    assert last.nominal_at.year == 2030
    assert schedule.prev_before(datetime(2026, 1, 1, tzinfo=UTC)) is None
