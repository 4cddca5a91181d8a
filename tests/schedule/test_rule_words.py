"""Sentences about recurrence rules, held against what the rules do."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.schedule.asking import utc

from mainspring.schedule.text import parse
from mainspring.schedule.zones import wall_of

if TYPE_CHECKING:
    from collections.abc import Hashable
    from datetime import date

BEGIN, END = utc("2026-01-05"), utc("2034-01-02")  # Mondays
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

# A rule from 1 January 2001, a Monday; its sentence; on how many days it fires in each of the periods that it claims.
CLAIMS = [
    ("FREQ=YEARLY", "Every year on 1 January at 00:00", 1),
    ("FREQ=YEARLY;BYMONTH=3,4", "Every year on the 1st of March and April at 00:00", 2),
    ("FREQ=YEARLY;BYMONTHDAY=1", "Every month on the 1st at 00:00", 1),
    ("FREQ=YEARLY;BYMONTHDAY=1,-1", "Every month on the 1st and last day at 00:00", 2),
    ("FREQ=YEARLY;BYDAY=MO", "Every Monday at 00:00", 1),
    ("FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "Every weekday at 09:00", 1),
    ("FREQ=YEARLY;BYDAY=20MO", "Every year on the 20th Monday of the year at 00:00", 1),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=1MO", "Every year on the first Monday of March at 00:00", 1),
    ("FREQ=YEARLY;BYMONTH=3;BYDAY=MO", "Every Monday in March at 00:00", None),
    ("FREQ=YEARLY;BYWEEKNO=20", "Every year on Monday in week 20 of the year at 00:00", 1),
    ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO,TU,WE,TH,FR,SA,SU",
     "Every year on every day in week 20 of the year at 00:00", 7),
    ("FREQ=YEARLY;BYWEEKNO=53", "Every year on Monday in week 53 of the year, where there is one, at 00:00", None),
    ("FREQ=YEARLY;BYYEARDAY=1,100", "Every year on the 1st and 100th day of the year at 00:00", 2),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "Every year on 29 February, where there is one, at 00:00", None),
    ("FREQ=YEARLY;BYMONTHDAY=1;BYSETPOS=-1",
     "Every year on the 1st of every month at 00:00 (only the last of these days in each year)", 1),
    ("FREQ=YEARLY;INTERVAL=2;BYMONTHDAY=1",
     "Every other year on the 1st of every month at 00:00, counted from 1 January 2001", 12),
    ("FREQ=MONTHLY", "Every month on the 1st at 00:00", 1),
    ("FREQ=MONTHLY;BYMONTHDAY=31", "Every month on the 31st, where there is one, at 00:00", None),
    ("FREQ=MONTHLY;BYDAY=5MO", "Every month on the fifth Monday, where there is one, at 00:00", None),
    ("FREQ=MONTHLY;BYDAY=MO", "Every Monday at 00:00", 1),
    ("FREQ=MONTHLY;BYDAY=MO,1MO", "Every Monday at 00:00", 1),
    ("FREQ=MONTHLY;BYDAY=1MO,-1FR", "Every month on the first Monday and the last Friday at 00:00", 2),
    ("FREQ=MONTHLY;BYMONTH=3", "Every year on 1 March at 00:00", 1),
    ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "Every Friday that is also the 13th at 00:00", None),
    ("FREQ=WEEKLY;BYMONTHDAY=13", "Every month on the 13th at 00:00", 1),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU", "Every other Tuesday at 00:00, counted from 1 January 2001", 1),
    ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH",
     "Every other week on Tuesday and Thursday at 00:00, counted from 1 January 2001", 2),
    ("FREQ=WEEKLY;BYDAY=TU,TH;BYSETPOS=1",
     "Every week on Tuesday and Thursday at 00:00 (only the first of these days in each week)", 1),
    ("FREQ=DAILY;BYMONTHDAY=13", "Every month on the 13th at 00:00", 1),
    ("FREQ=DAILY;BYYEARDAY=60", "Every year on the 60th day of the year at 00:00", 1),
    ("FREQ=DAILY;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12", "Every day in January to December at 00:00", 1),
    ("FREQ=DAILY;INTERVAL=2;BYMONTHDAY=13",
     "Every other day, only on the 13th, at 00:00, counted from 1 January 2001", None),
    ("FREQ=HOURLY", "Every hour", 1),
    ("FREQ=HOURLY;INTERVAL=6", "Every 6 hours", 1),
    ("FREQ=HOURLY;INTERVAL=5;BYDAY=SU", "Every 5 hours on every Sunday, counted from 1 January 2001 at 00:00", None),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "sentence", "days"), CLAIMS, ids=[rule for rule, _, _ in CLAIMS])
def test_a_rule_fires_as_often_as_its_sentence_claims(rule: str, sentence: str, days: int | None) -> None:
    schedule = parse(f"RRULE:{rule}")
    fired = Counter(each.nominal_at for each in schedule.between(BEGIN, END))

    assert schedule.words == f"{sentence}, UTC."
    if days is None:  # a sentence that admits of periods without
        assert re.search(r"where there is one|that is also|only on|in March|on every Sunday", sentence)
        return
    for claimed, count in days_by_period(sentence, {at.date() for at in fired}).items():
        assert count == days, claimed


def days_by_period(sentence: str, fired: set[date]) -> Counter[Hashable]:
    """On how many days it fired, for each period in which the sentence claims that it does."""
    match = re.match(r"Every (?:(other|\d+) )?(\w+?)s?\b(?! except)", sentence)
    assert match
    word, step = match[2], {None: 1, "other": 2}.get(match[1]) or int(match[1])
    found: Counter[Hashable] = Counter()
    day = BEGIN.date()
    while day < END.date():
        period = claimed_period(word, step, day)
        if period is not None:
            found[period] += day in fired
        elif day in fired:
            found["not claimed", day] = -1
        day += timedelta(days=1)
    edges = {BEGIN.year, END.year, (BEGIN.year, 1), (END.year, 1)}  # not looked at as a whole
    return Counter({period: count for period, count in found.items() if period not in edges})


def claimed_period(word: str, step: int, day: date) -> Hashable | None:
    week = (day - datetime(2001, 1, 1, tzinfo=UTC).date()).days // 7
    match word:
        case "hour" | "day":
            return day
        case "weekday":
            return day if day.weekday() < 5 else None
        case "week":
            return week if week % step == 0 else None
        case "month":
            return day.year, day.month
        case "year":
            return day.year if (day.year - 2001) % step == 0 else None
        case _:
            return day if day.weekday() == WEEKDAYS.index(word) and week % step == 0 else None


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"])
@pytest.mark.parametrize("own", ["", ";TZID=Asia/Kathmandu"])
def test_until_is_told_on_the_clock_that_the_times_are_told_on(zone: str, own: str) -> None:
    schedule = parse(f"DTSTART{own}:20260101T000000 RRULE:FREQ=MINUTELY;UNTIL=20261231T230000Z zone={zone}")
    last = schedule.prev_before(utc("2030-01-01"))

    assert last is not None
    assert last.nominal_at == utc("2026-12-31T23:00")
    shown = wall_of(parse("0 0 * * *", zone="Asia/Kathmandu" if own else zone).zone_info, last.nominal_at)
    clock_zone = "Asia/Kathmandu time" if own else "UTC" if zone == "UTC" else f"{zone} time"
    assert f"until {shown.day} {shown:%B %Y} at {shown:%H:%M}, {clock_zone}." in schedule.words


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("DTSTART:20260101T103015 RRULE:FREQ=HOURLY", "Every hour in minute 30, second 15, from 1 January 2026 on"),
        ("DTSTART:20260101T103015 RRULE:FREQ=MINUTELY", "Every minute in second 15, from 1 January 2026 on"),
        ("DTSTART:20260101T103000 RRULE:FREQ=HOURLY;INTERVAL=5", "Every 5 hours, counted from 1 January 2026 at 10:30"),
        ("RRULE:FREQ=WEEKLY;INTERVAL=2", "Every other Monday at 00:00, counted from 1 January 2001"),
    ],
)
def test_what_dtstart_implies_is_said(text: str, sentence: str) -> None:
    schedule = parse(text)

    assert schedule.words == f"{sentence}, UTC."
    assert parse(schedule.text).words == schedule.words  # also when DTSTART is written out
