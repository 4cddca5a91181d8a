"""Cron: tables of (expression, after, next), the day rule, special days, H, and what is refused."""

from __future__ import annotations

import pytest
from tests.schedule.asking import next_wall, walls

from mainspring.errors import InvalidSchedule
from mainspring.schedule.cron import Cron
from mainspring.schedule.text import parse

NEXT = [
    # expression            after                  next
    ("* * * * *", "2026-01-01 00:00", "2026-01-01 00:01"),
    ("* * * * * *", "2026-01-01 00:00:59", "2026-01-01 00:01"),
    ("*/7 * * * * *", "2026-01-01 00:00:56", "2026-01-01 00:01"),
    ("30 15 10 * * *", "2026-01-01 10:15:29", "2026-01-01 10:15:30"),
    ("0 9 * * *", "2026-01-01 09:00", "2026-01-02 09:00"),
    ("0 9 * * *", "2026-01-01 08:59:59.999999", "2026-01-01 09:00"),
    ("0 9 * * 1-5", "2026-01-02 09:00", "2026-01-05 09:00"),
    ("0 9 * * MON-FRI", "2026-01-02 09:00", "2026-01-05 09:00"),
    ("0 0 * * 7", "2026-01-01 00:00", "2026-01-04 00:00"),
    ("0 0 * * 5-7", "2026-01-03 00:00", "2026-01-04 00:00"),
    ("0 0 * * FRI-MON", "2026-01-04 00:00", "2026-01-05 00:00"),
    ("0 22-2 * * *", "2026-01-01 23:30", "2026-01-02 00:00"),
    ("0 0 1 NOV-FEB *", "2026-02-02 00:00", "2026-11-01 00:00"),
    ("5/20 * * * *", "2026-01-01 00:26", "2026-01-01 00:45"),
    ("0 0 ? * 1", "2026-01-01 00:00", "2026-01-05 00:00"),
    ("0 0 31 * *", "2026-03-31 00:00", "2026-05-31 00:00"),
    ("0 0 29 2 *", "2024-02-29 00:00", "2028-02-29 00:00"),
    ("0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00"),
    ("0 0 */29 2 1", "2001-01-01 00:00", "2010-02-01 00:00"),  # days 1 and 29, and a Monday: a star means both
    ("0 0 L * *", "2026-02-01 00:00", "2026-02-28 00:00"),
    ("0 0 L * *", "2028-02-01 00:00", "2028-02-29 00:00"),
    ("0 0 L-3 * *", "2026-02-01 00:00", "2026-02-25 00:00"),
    ("0 0 LW * *", "2026-01-30 12:00", "2026-02-27 00:00"),
    ("0 0 LW * *", "2026-05-01 00:00", "2026-05-29 00:00"),  # the 31st is a Sunday
    ("0 0 15W * *", "2026-02-01 00:00", "2026-02-16 00:00"),  # the 15th is a Sunday
    ("0 0 15W * *", "2026-08-01 00:00", "2026-08-14 00:00"),  # the 15th is a Saturday
    ("0 0 1W * *", "2026-07-31 00:00", "2026-08-03 00:00"),  # the 1st is a Saturday: not into July
    ("0 0 31W * *", "2026-05-02 00:00", "2026-05-29 00:00"),  # the 31st is a Sunday: not into June
    ("0 0 31W 4-5 *", "2026-04-01 00:00", "2026-05-29 00:00"),  # April has no 31st
    ("0 18 * * 5L", "2026-01-01 00:00", "2026-01-30 18:00"),
    ("0 18 * * FRIL", "2026-01-01 00:00", "2026-01-30 18:00"),
    ("0 0 * * 2#1", "2026-01-07 00:00", "2026-02-03 00:00"),
    ("0 0 * * MON#5", "2026-01-01 00:00", "2026-03-30 00:00"),
    ("0 0 13 * 5", "2026-02-01 00:00", "2026-02-06 00:00"),  # the 13th or a Friday
    ("0 0 13 * */5", "2026-01-01 00:00", "2026-02-13 00:00"),  # a star in front: the 13th and a Sunday or Friday
    ("@hourly", "2026-01-01 00:59", "2026-01-01 01:00"),
    ("@yearly", "2026-01-01 00:00", "2027-01-01 00:00"),
    ("@midnight", "2026-01-01 00:00", "2026-01-02 00:00"),
]


@pytest.mark.parametrize(("text", "after", "expected"), NEXT)
def test_the_next_wall_of_a_cron_expression(text: str, after: str, expected: str) -> None:
    assert next_wall(text, after) == expected


CANONICAL = [
    ("0 9 * * MON-FRI", "0 9 * * 1-5"),
    ("0  9 *  * mon,tue,wed,thu,fri", "0 9 * * 1-5"),
    ("0 0 9 * * *", "0 9 * * *"),
    ("0,15,30,45 * * * *", "0-45/15 * * * *"),
    ("*/15 * * * *", "*/15 * * * *"),
    ("*/20,7 * * * *", "*/20,7 * * * *"),
    ("0 0 ? * 7", "0 0 * * 0"),
    ("0 0 * 1/3 *", "0 0 * 1-10/3 *"),
    ("0 0 * */3 *", "0 0 * 1-10/3 *"),
    ("1,2 0 L,15W,1 * 2#1,5L", "1,2 0 1,15W,L * 2#1,5L"),
    ("H H(0-5) * * *", "H H(0-5) * * *"),
    ("@weekly", "0 0 * * 0"),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_equal_expressions_have_one_form(text: str, canonical: str) -> None:
    cron = Cron.parse(text)

    assert cron.text == canonical
    assert Cron.parse(canonical) == cron


REFUSED = [
    # expression                position, what is wrong,                    what is suggested
    ("0 0 1--100000000 * *", 5, "'-' cannot stand here", ""),
    ("0 0 1--15 * *", 5, "'-' cannot stand here", "0 0 1-15 * *"),
    ("0 9 * * mon..fri", 11, "'.' cannot stand here", "0 9 * * MON-FRI"),
    ("0 0 * * 5#-1", 9, "'#' cannot stand here", "0 0 * * 5L"),
    ("H(0-29 * * * *", 1, "'(' cannot stand here", "H(0-29) * * * *"),
    ("* ? * * *", 2, "'?' stands for a whole day", "* * * * *"),
    ("*/90 * * * *", 2, "a step of 90 leads nowhere", "@every 90m"),
    ("*/0 * * * *", 2, "a step of 0 leads nowhere", ""),
    ("0 9 * * FUN", 8, "'FUN' is no day of week", "0 9 * * SUN"),
    ("0 9 * * Tues-Fri", 8, "'TUES' is no day of week", "0 9 * * TUE-Fri"),
    ("0 9 1 septembr *", 6, "'SEPTEMBR' is no month", "0 9 1 SEPTEMBER *"),
    ("0 9 * * MUN", 8, "'MUN' is no day of week", ""),  # Monday or Sunday
    ("0 24 * * *", 2, "24 is no hour", ""),
    ("60 * * * *", 0, "60 is no minute", ""),
    ("0 0 0 * *", 4, "0 is no day of month", ""),
    ("0 0 * 13 *", 6, "13 is no month", ""),
    ("0 0 * * 8", 8, "8 is no day of week", ""),
    ("0 0 * * 1#6", 10, "at most five of a weekday", ""),
    ("0 0 L-31 * *", 6, "so many days before its last", ""),
    ("0,,5 * * * *", 2, "an item is missing", "0,5 * * * *"),
    ("0 9 * *", 0, "5 fields", "0 9 * * *"),
    ("0 0 0 9 * * 2026 1", 1, "5 fields", ""),
    ("* * * * * * * *", 1, "5 fields", ""),
    ("24/7", 0, "5 fields", ""),
    ("0 9 * * mon..fri zone=Europe/Berlin", 11, "cannot stand here", "0 9 * * MON-FRI zone=Europe/Berlin"),
    ("0 9 * * mon..fri Europe/Berlin", 11, "cannot stand here", "0 9 * * MON-FRI Europe/Berlin"),
    ("TZ=Asia/Tokyo 0 9 * * mon..fri", 11, "cannot stand here", "TZ=Asia/Tokyo 0 9 * * MON-FRI"),
    ("0 8 * * * | 0 9 * * mon..fri", 11, "cannot stand here", "0 8 * * * | 0 9 * * MON-FRI"),
    ("1-5/10 * * * *", 4, "a step of 10 leads nowhere", ""),
    ("*/90 9-17 * * 1-5", 2, "a step of 90 leads nowhere", ""),
    ("0 */36 * * *", 4, "a step of 36 leads nowhere", "@every 36h"),
    ("*-5 * * * *", 1, "a star has no range", ""),
    ("0 9 * * 5W", 8, "'5W' is no day of week", ""),
    ("0 H(9-5) * * *", 4, "does not wrap around", ""),
    ("0 9 * * * extra words here", 1, "5 fields", "0 9 * * *"),
    ("٣ * * * *", 0, "'٣' cannot begin a schedule", ""),
]


@pytest.mark.parametrize(("text", "position", "problem", "suggestion"), REFUSED)
def test_an_error_points_at_the_character(text: str, position: int, problem: str, suggestion: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        parse(text)

    fields = caught.value.fields
    assert problem in str(caught.value)
    assert fields["position"] == position
    assert fields["suggestion"] == suggestion
    assert str(fields["pointer"]).splitlines()[-1] == " " * position + "^"
    assert fields["allowed"]


def test_h_spreads_jobs_over_the_hour_and_stays_where_it_is() -> None:
    schedule = parse("H * * * *")
    minutes = [walls(schedule, "2026-01-01T00:00", "2026-01-01T01:00", job=f"job-{n}")[0][-2:] for n in range(1000)]

    assert len(set(minutes)) == 60
    assert max(minutes.count(minute) for minute in set(minutes)) < 40
    assert minutes[:5] == ["30", "51", "10", "58", "14"]  # for ever


def test_h_keeps_to_its_range_and_its_step() -> None:
    quarter = walls(parse("H/15 * * * *"), "2026-01-01T00:00", "2026-01-01T01:00", job="backup")
    early = {walls(parse("H H(1-4) * * *"), "2026-01-01", "2026-01-02", job=str(n))[0][11:13] for n in range(50)}
    monthly = {walls(parse("0 0 H * *"), "2026-02-01", "2026-03-01", job=str(n))[0][8:10] for n in range(300)}

    assert len(quarter) == 4
    assert early == {"01", "02", "03", "04"}
    assert monthly == {f"{day:02}" for day in range(1, 29)}
