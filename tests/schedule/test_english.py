"""Plain English: what each form means, and what is refused because it may mean something else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.errors import InvalidSchedule
from mainspring.schedule.english.sentence import read
from mainspring.schedule.english.vocabulary import AMBIGUOUS, EVERYTHING, FORMS
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.text import parse
from mainspring.schedule.words.sentence import in_words
from mainspring.schedule.zones import zone_named

NOW = datetime(2026, 11, 16, 3, 7, 42, tzinfo=UTC)  # a Monday, 04:07 in Berlin
BERLIN = zone_named("Europe/Berlin")


def meaning(text: str) -> str:
    """The canonical text of what was said, without the zone."""
    found = read(text, zone=BERLIN, now=NOW)
    return found.when.text if isinstance(found, Schedule) else found.text


def refused(text: str) -> InvalidSchedule:
    with pytest.raises(InvalidSchedule) as caught:
        read(text, zone=BERLIN, now=NOW)
    assert caught.value.code == "invalid-english"
    assert caught.value.hint
    return caught.value


# ── what is understood ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        # days of the week
        ("every day at 09:00", "0 9 * * *"),
        ("daily at 9am", "0 9 * * *"),
        ("every day at noon", "0 12 * * *"),
        ("every day at midnight", "0 0 * * *"),
        ("every day at 12am", "0 0 * * *"),
        ("every day at 12pm", "0 12 * * *"),
        ("every day at 5:30 p.m.", "30 17 * * *"),
        ("every day at 09:00:30", "30 0 9 * * *"),
        ("Every weekday at 09:00.", "0 9 * * 1-5"),
        ("at 9am every weekday", "0 9 * * 1-5"),
        ("weekdays at 8:30", "30 8 * * 1-5"),
        ("mon-fri at 08:30", "30 8 * * 1-5"),
        ("monday to friday at 08:30", "30 8 * * 1-5"),
        ("on weekends at 10:00", "0 10 * * 0,6"),
        ("every weekend day at 10:00", "0 10 * * 0,6"),
        ("every monday, wednesday and friday at 09:00", "0 9 * * 1-5/2"),
        ("mondays and thursdays at 09:00", "0 9 * * 1,4"),
        ("weekly on monday at 09:00", "0 9 * * 1"),
        ("every day except sunday at 09:00", "0 9 * * 1-6"),
        ("every weekday except on wednesdays at 09:00", "0 9 * * 1,2,4,5"),
        ("every friday through monday at 01:00", "0 1 * * 0,1,5,6"),
        # times
        ("every day at 09:00, 12:00 and 17:00", "0 9,12,17 * * *"),
        ("every day at 00:00, 06:00, 12:00 and 18:00", "0 0-18/6 * * *"),
        ("every day at 09:00 and 17:30", "0 9 * * * | 30 17 * * *"),
        # how often
        ("every minute", "* * * * *"),
        ("every second", "* * * * * *"),
        ("every 30 seconds", "0,30 * * * * *"),
        ("every 15 minutes", "*/15 * * * *"),
        ("every fifteen minutes", "*/15 * * * *"),
        ("every five minutes", "*/5 * * * *"),
        ("every half hour", "*/30 * * * *"),
        ("every half an hour", "*/30 * * * *"),
        ("every hour", "0 * * * *"),
        ("hourly", "0 * * * *"),
        ("every hour on the hour", "0 * * * *"),
        ("hourly at :15 and :45", "15,45 * * * *"),
        ("every hour at 15 minutes past the hour", "15 * * * *"),
        ("every 2 hours", "0 */2 * * *"),
        ("every other hour", "0 */2 * * *"),
        ("every 24 hours", "PT24H/2026-11-16T03:07:00Z"),
        ("every 15 minutes on weekdays", "*/15 * * * 1-5"),
        ("every 45 minutes", "PT45M/2026-11-16T03:07:00Z"),
        ("every 90 minutes starting 2026-12-01 08:00", "PT1H30M/2026-12-01T08:00:00"),
        # windows
        ("every 15 minutes between 8am and 6pm", "*/15 8-17 * * * | 0 18 * * *"),
        ("every 15 minutes from 8am to before 6pm", "*/15 8-17 * * *"),
        ("every 15 minutes between 8am and 6pm on weekdays", "*/15 8-17 * * 1-5 | 0 18 * * 1-5"),
        ("every hour from 9am to 5pm on weekdays", "0 9-17 * * 1-5"),
        ("every 2 hours between 9am and 5pm", "0 9-17/2 * * *"),
        ("every hour from 10pm to 2am", "0 0-2,22,23 * * *"),
        ("every 90 minutes between 8am and 5pm", "0 8-17/3 * * * | 30 9-15/3 * * *"),
        # days of the month
        ("monthly on the 15th at 02:00", "0 2 15 * *"),
        ("every month on the 15th at 02:00", "0 2 15 * *"),
        ("every 15th of the month at 02:00", "0 2 15 * *"),
        ("on the 1st and 15th of the month at 02:00", "0 2 1,15 * *"),
        ("on day 15 of every month at 02:00", "0 2 15 * *"),
        ("last day of the month at 23:00", "0 23 L * *"),
        ("second to last day of the month at 23:00", "0 23 L-1 * *"),
        ("last weekday of the month at 18:00", "0 18 LW * *"),
        ("first weekday of the month at 18:00", "0 18 1W * *"),
        ("weekday nearest the 15th of the month at 18:00", "0 18 15W * *"),
        ("nearest weekday to the 15th of every month at 18:00", "0 18 15W * *"),
        ("last friday of the month at 18:00", "0 18 * * 5L"),
        ("monthly on the first monday at 10:00", "0 10 * * 1#1"),
        ("the first and third monday of the month at 10:00", "0 10 * * 1#1,1#3"),
        ("2nd and last friday of every month at 10:00", "0 10 * * 5#2,5L"),
        ("quarterly on the 1st at 06:00", "0 6 1 1-10/3 *"),
        ("every quarter on the last day at 06:00", "0 6 L 3-12/3 *"),
        ("every 31st of january and march at 06:00", "0 6 31 1,3 *"),
        ("monthly on the 31st, where there is one, at 06:00", "0 6 31 * *"),
        ("on the 30th and 31st of the month, where there is one, at 06:00", "0 6 30,31 * *"),
        ("every year on the last friday of november at 09:00", "0 9 * 11 5L"),
        # dates and months
        ("every year on 24 december at 18:00", "0 18 24 12 *"),
        ("every december 24th at 6pm", "0 18 24 12 *"),
        ("yearly on the 24th of december at 18:00", "0 18 24 12 *"),
        ("every year on 1 january and 15 july at 06:00", "0 6 1 1 * | 0 6 15 7 *"),
        ("every 1st of january and july at 06:00", "0 6 1 1,7 *"),
        ("every weekday at 09:00 in june and july", "0 9 * 6,7 1-5"),
        ("every monday in june to august at 09:00", "0 9 * 6-8 1"),
        ("every day at 09:00 except in august", "0 9 * 1-7,9-12 *"),
        # by twos and more
        ("every other tuesday at noon", "DTSTART:20261117T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU"),
        ("every other monday at 03:00", "DTSTART:20261123T030000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
        ("fortnightly on friday at 16:00", "DTSTART:20261120T160000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=FR"),
        ("every 3 weeks on monday at 09:00", "DTSTART:20261116T090000 RRULE:FREQ=WEEKLY;INTERVAL=3;BYDAY=MO"),
        (
            "every 2 weeks on monday and thursday at 09:00",
            "DTSTART:20261116T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH",
        ),
        ("every other day at 09:00", "DTSTART:20261116T090000 RRULE:FREQ=DAILY;INTERVAL=2"),
        ("every 3 days at 03:00 starting 2027-01-01", "DTSTART:20270101T030000 RRULE:FREQ=DAILY;INTERVAL=3"),
        ("every 2 months on the 1st at 09:00", "DTSTART:20261201T090000 RRULE:FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=1"),
        (
            "every 6 months on the last friday at 09:00",
            "DTSTART:20261127T090000 RRULE:FREQ=MONTHLY;INTERVAL=6;BYDAY=-1FR",
        ),
        (
            "every 4 years on 29 february at 12:00",
            "DTSTART:20280229T120000 RRULE:FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
        ),
        # once
        ("tomorrow at 3pm", "2026-11-17T14:00:00Z"),
        ("today at 18:00", "2026-11-16T17:00:00Z"),
        ("the day after tomorrow at noon", "2026-11-18T11:00:00Z"),
        ("in 15 minutes", "2026-11-16T03:22:42Z"),
        ("in an hour", "2026-11-16T04:07:42Z"),
        ("in half an hour", "2026-11-16T03:37:42Z"),
        ("in 3 days at 09:00", "2026-11-19T08:00:00Z"),
        ("in a week at 09:00", "2026-11-23T08:00:00Z"),
        ("on 2026-12-24 at 18:00", "2026-12-24T17:00:00Z"),
        ("on 24 december 2026 at 18:00", "2026-12-24T17:00:00Z"),
        ("december 24, 2026 at 6pm", "2026-12-24T17:00:00Z"),
        ("tomorrow at 09:00 and 17:00", "2026-11-17T08:00:00Z, 2026-11-17T16:00:00Z"),
        ("once, on 2026-12-24 at 18:00", "2026-12-24T17:00:00Z"),
        # what is left out
        ("every day at 9am except 25 december", "0 9 * * * but not * * * 25 12 *"),
        ("every day except the 1st at 9am", "0 9 * * * but not * * * 1 * *"),
        ("every day at 9am except on 2026-12-25", "0 9 * * * but not * * * 25 12 * 2026"),
        (
            "every day at 9am except 25 december 2026 and 26 december 2026",
            "0 9 * * * but not (* * * 25 12 * 2026 | * * * 26 12 * 2026)",
        ),
        ("every weekday at 9am except the last day of the month", "0 9 * * 1-5 but not * * * L * *"),
        ("every day at 9am but not on 25 december", "0 9 * * * but not * * * 25 12 *"),
        ("every day at 9am except sundays, except 25 december", "0 9 * * 1-6 but not * * * 25 12 *"),
        ("every day at 9am except sundays and 25 december", "0 9 * * 1-6 but not * * * 25 12 *"),
        ("every day at 9am except sundays and every friday at 10am", "0 10 * * 5 | 0 9 * * 1-6"),
        # several
        ("every weekday at 09:00 and every sunday at 11:00", "0 11 * * 0 | 0 9 * * 1-5"),
        ("every monday at 9am and friday at 10am", "0 10 * * 5 | 0 9 * * 1"),
        ("mondays at 9am, fridays at 10am", "0 10 * * 5 | 0 9 * * 1"),
        ("monthly on the 1st at 9am and the 15th at 10am", "0 10 15 * * | 0 9 1 * *"),
        ("every year on 1 january at 9am and 1 july at 10am", "0 10 1 7 * | 0 9 1 1 *"),
        ("quarterly on the 1st at 9am and the last day at 10am", "0 10 L 3-12/3 * | 0 9 1 1-10/3 *"),
        ("every day at 09:00; every hour on weekends", "0 * * * 0,6 | 0 9 * * *"),
    ],
)
def test_a_sentence_means(text: str, canonical: str) -> None:
    assert meaning(text) == canonical


def test_a_zone_and_a_beginning_make_it_a_whole_schedule() -> None:
    found = read("every weekday at 9am in america/new_york starting 2027-01-04", zone=BERLIN, now=NOW)

    assert isinstance(found, Schedule)
    assert (found.zone, found.starts_at) == ("America/New_York", datetime(2027, 1, 4, 5, tzinfo=UTC))


@pytest.mark.parametrize("text", ["every day at 09:00 UTC", "every day at 09:00, UTC", "every day at 09:00 in utc"])
def test_zones_are_named_in_several_ways(text: str) -> None:
    found = read(text, zone=BERLIN, now=NOW)

    assert isinstance(found, Schedule)
    assert found.zone == "UTC"


def test_a_zone_that_is_named_wins_over_the_one_that_is_given_even_if_it_is_utc() -> None:
    assert parse("every day at 09:00 UTC", zone="Europe/Berlin").zone == "UTC"
    assert parse("every day at 09:00 starting 2027-01-01", zone="Europe/Berlin").zone == "Europe/Berlin"


def test_tomorrow_is_tomorrow_in_the_zone_that_is_named() -> None:
    assert meaning("tomorrow at noon in America/New_York") == "2026-11-16T17:00:00Z", "it is still the 15th there"


def test_what_is_counted_from_now_needs_to_know_when_that_is() -> None:
    for text in ("tomorrow at 3pm", "every other tuesday at noon", "in 15 minutes", "every 45 minutes"):
        with pytest.raises(InvalidSchedule, match="counted from now"):
            read(text, zone=BERLIN)


@pytest.mark.parametrize(
    "text", ["every weekday at 09:00", "on 2026-12-24 at 18:00", "every 3 days at 03:00 starting 2027-01-01"]
)
def test_what_is_not_counted_from_now_does_without(text: str) -> None:
    read(text, zone=BERLIN)


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────


REFUSED = [
    ("every day", 9, "does not say at what time", "'every day at 09:00'"),
    (
        "every sunday and every day at 09:00",
        13,
        "does not say at what time",
        "'every sunday at 09:00 and every day at 09:00'",
    ),
    (
        "every weekday at 9",
        17,
        "morning or in the afternoon",
        "'every weekday at 09:00' or 'every weekday at 21:00'",
    ),
    ("every weekday at 15", 17, "an hour or a minute", "'every weekday at 15:00'"),
    ("every day at 13pm", 13, "13 pm is not a time", "'every day at 13:00'"),
    ("every day at 25:00", 13, "not a time of day", "23:59"),
    ("every friday at midnight", 16, "beginning or the end", "'every friday at 00:00'"),
    ("tomorrow at midnight", 12, "beginning or the end", "'tomorrow at 00:00'"),
    ("monday at 09:00", 0, "once, or every time", "'every monday at 09:00'"),
    ("on the 15th at 02:00", 0, "once, or every time", "'monthly on the 15th at 02:00'"),
    ("24 december at 18:00", 0, "once, or every time", "'every year on 24 december at 18:00'"),
    ("at 09:00", 0, "on which days", "'every day at 09:00'"),
    ("next friday at 09:00", 0, "2026-11-20 or 2026-11-27", "'on 2026-11-20 at 09:00'"),
    ("every second monday at 09:00", 6, "may count weeks", "'every 2 weeks on monday at 09:00'"),
    ("every second day at 09:00", 6, "may count days", "'every 2 days at 09:00'"),
    ("every 15th day at 09:00", 6, "may count days", "'every 15 days at 09:00'"),
    ("every first day at 09:00", 6, "may count days", "'the first day of the month at 09:00'"),
    (
        "every other weekday at 09:00",
        0,
        "every other day, or every other week",
        "'every 2 weeks on weekday at 09:00'",
    ),
    ("every other monday and thursday at 09:00", 0, "or every other week", "every 2 weeks on"),
    ("every weekend at 10:00", 0, "has two days", "'every saturday at 10:00'"),
    ("monthly on the 31st at 09:00", 0, "not every month has a day 31", "'last day of the month at 09:00'"),
    ("every 2 months on the 30th at 09:00", 0, "not every month has a day 30", "2 months on the last day at 09:00'"),
    ("every 2nd monday at 09:00", 6, "may count weeks", "'every 2 weeks on monday at 09:00'"),
    ("biweekly on monday at 09:00", 0, "every 2 weeks or twice a week", "'every 2 weeks on monday at 09:00'"),
    ("every evening", 13, "at what time", "'every evening at 18:00'"),
    ("every morning at 6pm", 6, "18:00 is not in the morning", "'every day at 08:00'"),
    ("every friday night at 2am", 13, "either day", "'every saturday at 02:00'"),
    ("twice a day", 11, "at what time", "'twice a day at 09:00 and 17:00'"),
    ("twice a day at 9am", 0, "1 is named", "'twice a day at 09:00 and 17:00'"),
    ("12 midnight", 0, "on which days", "'every day 12 midnight'"),
    ("every hour between 9am and 9am", 0, "one moment or a whole day", "'every hour'"),
    ("every 10 minutes from 02:00", 0, "up to when", "'every 10 minutes from 02:00 to 23:59'"),
    ("every hour between 9 and 17", 19, "morning", "'every hour between 09:00 and 17:00'"),
    ("quarterly on the 31st at 18:00", 0, "has a day 31", "'last day of the quarter at 18:00'"),
    ("every day at 9am EST", 17, "names an offset", "'every day at 9am America/New_York'"),
    ("every day at 9am CET", 17, "names an offset", "'every day at 9am Europe/Berlin'"),
    ("every day at 9am in new york", 20, "no time zone", "'every day at 9am in America/New_York'"),
    ("every day at 9am pacific time", 17, "no time zone", "'every day at 9am America/Los_Angeles'"),
    ("24/12/2026 18:00", 0, "which of the two is the month", "'2026-12-24 18:00'"),
    ("every 2 months on 24 december at 9am", 0, "contradict", "'every year on 24 december at 09:00'"),
    (
        "every hour on the 31st of the month",
        0,
        "not every month has a day 31",
        "'every hour on the last day of the month'",
    ),
    ("every hour on the 31st in june and july", 0, "not every such month has a day 31", "last day"),
    (
        "monthly on the 31st in june at 09:00",
        0,
        "not every such month",
        "'every year on the last day of june at 09:00'",
    ),
    ("every 1.5 seconds", 6, "not a whole number of seconds", "'every 1 second' or 'every 2 seconds'"),
    ("every second and a half", 6, "not a whole number of seconds", "'every 2 seconds'"),
    ("every 1.5 days", 6, "days are counted whole", "'every 36 hours'"),
    ("every day and a half", 6, "days are counted whole", "'every 36 hours'"),
    ("every 1.5 months on the 1st at 9am", 6, "months are counted whole", "'every 10 days at 09:00'"),
    ("every 0.0 hours", 6, "out of range", "1 to 10,000"),
    ("every day at 9.30", 13, "a colon", "'every day at 9:30'"),
    ("tomorrow at 9am or 5pm", 16, "which of the two", "'tomorrow at 9am and 5pm' or 'tomorrow at 9am'"),
    ("in 5 minutes or in 10 minutes", 13, "which of the two", "'in 5 minutes and in 10 minutes'"),
    ("once a day at 9am or 5pm", 0, "says once a day, and 2 are named", "'twice a day at 09:00 and 17:00'"),
    ("every hour for 10 days until 2027-03-01", 0, "says twice when it ends", "'every hour for 10 days'"),
    ("tomorrow at 9am for 10 days", 0, "that is one day", "'every day starting 2026-11-17 at 9am for 10 days'"),
    ("tomorrow at 9am, 10 times", 0, "that is one day", "'every day starting 2026-11-17 at 9am, 10 times'"),
    ("in 5 minutes for 10 days", 0, "nothing here does", "'every 15 minutes, for 10 days'"),
    (
        "every day at 9am for 10 days and every sunday at 11:00",
        0,
        "begins and ends as a whole",
        "until 2027-03-01'",
    ),
    ("every 2 hours starting at noon", 0, "up to when", "'every 2 hours starting at noon to 23:59'"),
    ("every hour until 5pm", 11, "one day or on every day", "'every hour from 00:00 to 5pm'"),
    ("every day at 9am and/or 5pm", 17, "one of them or both", "'every day at 9am and 5pm'"),
    ("tonight at 2am", 0, "either day", "without 'night'"),
    ("this morning at 3am", 0, "over already", "'tomorrow morning at 3am'"),
    ("every day at half past nine", 13, "morning or in the afternoon", "'every day at 09:30' or 'every day at 21:30'"),
    ("every friday at 17h30", 16, "a colon", "'every friday at 17:30'"),
    ("every day around 9am", 10, "no time in particular", "'every day at 9am'"),
    ("every hour during business hours", 11, "from when to when", "'every hour from 9am to 5pm on weekdays'"),
    ("every 30 minutes during the day", 17, "from when to when", "'every 30 minutes from 8am to 6pm'"),
    ("every 15 minutes starting now", 17, "begins as soon as", "'every 15 minutes'"),
    ("every 4 hours starting at 8am", 0, "up to when", "'every 4 hours from 00:00'"),
    ("every 5 minutes offset by 7 minutes", 0, "shorter than the step", "offset by 2 minutes'"),
    ("every 45 minutes offset by 2 minutes", 0, "divide the hour", "offset by 2 minutes'"),
    ("4 times a day", 13, "at what time", "'4 times a day at 00:00, 06:00, 12:00 and 18:00' or 'every 6 hours'"),
    ("four times an hour", 0, "at which minutes", "'every 15 minutes'"),
    ("three times a week", 18, "which day", "'three times a week on monday, wednesday and friday at 09:00'"),
    ("twice a month", 13, "which day", "'twice a month on the 1st and 15th at 09:00'"),
    ("at 15 and 45 minutes past the hour", 0, "which days", "'every hour at 15 and 45 minutes past the hour'"),
    ("at month end at 6pm", 0, "once, or every time", "'monthly on month end at 6pm'"),
    ("m-f at 9am", 0, "not understood", "'mon-fri at 9am'"),
    (
        "every hour except between 1am and 5am",
        11,
        "takes days and months",
        "but not every hour between 1am and 5am'",
    ),
    ("every hour except midnight", 11, "takes days and months", "'every hour but not every day at midnight'"),
    ("every day at 9am once", 17, "'once' and what recurs", "'every day at 9am once only' or 'every day at 9am'"),
    ("once on friday at 9am", 0, "once, or every time", "'once on 2026-11-20 at 9am'"),
    ("once at 9am", 0, "on which days", "Write 'today at 9am' or 'tomorrow at 9am'"),
    ("quarterly on the 31st at 5pm in Europe/Berlin", 0, "day 31", "'last day of the quarter at 5pm in Europe/Berlin'"),
    (
        "quarterly on the 31st at 5pm in Europe/Berlin until 1 march",
        0,
        "day 31",
        "'last day of the quarter at 5pm in Europe/Berlin until 1 march'",
    ),
    ("on the 30th and 31st of the month at 5pm", 0, "has a day 30", "31st of the month, where there is one, at 5pm'"),
    ("monday at 17:00 in Asia/Tokyo", 0, "once, or every time", "or 'on 2026-11-23 at 17:00 in Asia/Tokyo'"),
    ("biweekly on friday at 5pm UTC", 0, "twice a week", "Write 'every 2 weeks on friday at 5pm UTC'. For example: "),
    ("semimonthly on the 1st and 20th at 5pm", 0, "no days", "Write 'twice a month on the 1st and 20th at 5pm'"),
    ("bimonthly on the 5th at 5pm", 0, "every 2 months", "Write 'every 2 months on the 5th at 5pm'. For example: "),
    ("bimonthly on the 5th and 6th at 5pm", 0, "every 2 months", "or 'twice a month on the 5th and 6th at 5pm'"),
    (
        "every other monday at 9am and friday at 10am",
        30,
        "once, or every time",
        "'every other monday at 9am and every friday at 10am'",
    ),
    ("once a quarter at 9am", 21, "which day of the quarter", "'once a quarter on the 1st at 9am'"),
    ("5 days a week at 9am", 20, "which day of the week", "'every week on monday at 09:00'"),
    ("32nd of the month at 9am", 0, "no month has a day 32", "'last day of the month at 18:00'"),
    ("every day at 9am until friday", 23, "2026-11-20 or 2026-11-27", "'every day at 9am until 2026-11-20'"),
    ("every day at 9am ET", 17, "names an offset", "'every day at 9am America/New_York'"),
    ("every day at 9am UTC+2", 17, "names an offset", "'every day at 09:00 in Europe/Berlin'"),
    ("every hour on friday the 13th", 0, "once, or every time", "'every hour on the 15th of the month'"),
    (
        "every day in Europe/Berlin until 1 march",
        40,
        "what time",
        "'every day at 09:00 in Europe/Berlin until 1 march'",
    ),
    ("bihourly", 0, "not understood", "For example: "),
    (
        "every day at 9am except sundays and holidays",
        17,
        "which days",
        "'every day at 9am except sundays not=holidays'",
    ),
    ("every weekday except holidays at 9am", 14, "which days are holidays", "'every weekday at 9am not=holidays'"),
    ("every 5 minutes starting in 1 hour", 30, "'hour' is not understood", "days, weeks or months"),
    ("every second hour", 6, "may count hours", "'every 2 hours'"),
    ("every couple of hours", 6, "no number", "'every 2 hours'"),
    ("every hour until 2027-03-01 at 09:00", 11, "may or may not", "'every hour until before 2027-03-01 at 09:00'"),
    ("every hour from 2027-03-01 to 2027-02-01", 0, "ends before it starts", "after it starts"),
    ("every 15 minutes from 8am until 6pm", 26, "may or may not include", "'every 15 minutes from 8am to 6pm'"),
    ("every hour from 10pm to 2am on fridays", 0, "either day", "on fridays"),
    ("every day between 8am and 6pm", 29, "how often", "every hour"),
    ("weekly at 09:00", 15, "which day of the week", "'weekly on monday at 09:00'"),
    ("monthly at 09:00", 16, "which day of the month", "'monthly on the 1st at 09:00'"),
    ("every year at 09:00", 19, "which day of the year", "'every year on 1 january at 09:00'"),
    ("every day at 09:00 on the 15th", 0, "contradict", "monthly"),
    ("every 0 minutes", 6, "out of range", "1 to 10,000"),
    ("every 7 seconds between 8am and 6pm", 0, "cron expressions", "every 15 minutes"),
    ("every 45 minutes on weekdays", 0, "does not divide", "every 30 minutes on weekdays"),
    ("every 15th of the month except sundays at 09:00", 0, "goes with days of the week", "weekday nearest"),
    ("every day except weekdays and weekends at 09:00", 0, "no day is left", "every day except sunday"),
    ("on 2027-02-30 at 09:00", 3, "no such date", "'on 2027-02-28 at 09:00'"),
    ("on 2027-13-01 at 09:00", 3, "no such date", "'on 2027-01-13 at 09:00'"),
    ("today at 03:00", 0, "over already", "'tomorrow at 03:00'"),
    ("every tuseday at noon", 6, "not understood", "'every tuesday at noon'"),
    ("every weekday at 09:00 in Europe/Berln", 26, "no time zone", "in Europe/Berlin'"),
    ("every weekday at 09:00 in Berlin", 26, "no time zone", "in Europe/Berlin'"),
    ("every", 5, "ends too early", "'every hour'"),
    ("when the cows come home", 0, "not understood", "For example: "),
    ("every day at 09:00 every monday", 19, "not understood", "every day at 09:00"),
    ("every 31 february at 09:00", 6, "february has no day 31", "29 february"),
]


@pytest.mark.parametrize(("text", "position", "problem", "offered"), REFUSED)
def test_what_may_mean_something_else_is_refused(text: str, position: int, problem: str, offered: str) -> None:
    error = refused(text)

    assert error.fields["position"] == position
    assert problem in error.message
    assert offered in (error.hint or "")


@pytest.mark.parametrize("word", AMBIGUOUS)
def test_what_is_offered_for_an_ambiguous_word_is_understood(word: str) -> None:
    refused(f"{word} at 09:00")
    for form in AMBIGUOUS[word].examples:
        read(form, zone=BERLIN, now=NOW)


def test_every_form_that_is_offered_is_understood() -> None:
    for form in FORMS:
        read(form, zone=BERLIN, now=NOW)


@pytest.mark.parametrize("form", [form for form in FORMS if "quarter" not in form])
def test_the_words_for_a_sentence_say_the_same_sentence(form: str) -> None:
    schedule = parse(form, zone="Europe/Berlin", now=NOW)

    assert parse(in_words(schedule), now=NOW) == schedule


# ── hostile input ───────────────────────────────────────────────────────────────────────────────────────────

OTHERS = (
    "or",
    "for",
    "1.5",
    "½",
    "1",
    "2",
    "15",
    "9am",
    "5pm",
    "09:00",
    "2027-01-01",
    "1st",
    "15th",
    ",",
    "UTC",
    "Europe/Berlin",
)
WORDS = st.sampled_from([*sorted(EVERYTHING), *OTHERS])


@given(st.lists(WORDS, min_size=1, max_size=12))
def test_any_words_are_understood_or_refused_by_name(words: list[str]) -> None:
    text = " ".join(words)
    try:
        assert read(text, zone=BERLIN, now=NOW).text
    except InvalidSchedule as error:
        position = int(str(error.fields["position"]))
        if not error.hint or not 0 <= position <= len(text):
            raise


@given(st.text(max_size=60))
def test_any_text_is_understood_or_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        read(text + " \x00", zone=BERLIN, now=NOW)


@pytest.mark.parametrize(
    "text",
    [
        "every day at 09:00" + " and every day at 09:00" * 400,
        "every " * 80,
        "every day at " + "09:00, " * 60,
        "9" * 400,
        "every " + "9" * 400 + " minutes",
        "in " + "9" * 300 + " hours",
        "every day at 09:00" + " and every day at 10:00" * 20,
        "every day at \x1b[31m09:00",
        "every day at \ud800",
    ],
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        read(text, zone=BERLIN, now=NOW)
