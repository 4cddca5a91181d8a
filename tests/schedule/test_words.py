"""Schedules in words: sentences that a person would accept, for every form."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schedule.strategies import schedules

from mainspring.errors import InvalidSchedule
from mainspring.schedule.calendar import Calendar
from mainspring.schedule.cron import Cron
from mainspring.schedule.rule import Rule
from mainspring.schedule.schedule import Schedule
from mainspring.schedule.sets import Union
from mainspring.schedule.text import parse
from mainspring.schedule.words.sentence import MAX_LENGTH, in_words

NOW = datetime(2026, 11, 16, 3, 7, tzinfo=UTC)
CALENDARS = {name: Calendar(name=name, dates=frozenset({date(2026, 12, 25)})) for name in ("holidays", "freeze")} | {
    "office": Calendar(name="office", weekdays=frozenset({0, 1, 2}))
}


def words(text: str) -> str:
    return in_words(parse(text, calendars=CALENDARS, now=NOW))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # times of day
        ("0 9 * * *", "Every day at 09:00"),
        ("30 17 * * *", "Every day at 17:30"),
        ("15 30 17 * * *", "Every day at 17:30:15"),
        ("0 6,18 * * *", "Every day at 06:00 and 18:00"),
        ("15 2,4,8,16,17,20,23 * * *", "Every day at 02:15, 04:15, 08:15, 16:15, 17:15, 20:15 and 23:15"),
        # how often
        ("* * * * *", "Every minute"),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("0 * * * *", "Every hour, on the hour"),
        ("5 * * * *", "Every hour at 5 minutes past the hour"),
        ("30 10 * * * *", "Every hour at 10 minutes and 30 seconds past the hour"),
        ("0 */2 * * *", "Every 2 hours"),
        ("5-59/15 * * * *", "Every 15 minutes, beginning at 5 minutes past the hour"),
        ("*/7 * * * *", "Every 7 minutes from 0 through 56 minutes past the hour"),
        ("10-20 * * * *", "Every minute from 10 through 20 minutes past the hour"),
        ("17,41 * * * *", "At 17 and 41 minutes past the hour"),
        # windows
        ("*/15 8-17 * * *", "Every 15 minutes from 08:00 through 17:45"),
        ("0 9-17 * * *", "Every hour from 09:00 through 17:00"),
        ("7 9-17 * * *", "Every hour from 09:07 through 17:07"),
        ("* 3 * * *", "Every minute from 03:00 through 03:59"),
        ("0 22-2 * * *", "Every hour from 22:00 through 02:00"),
        ("*/10 * 8-17 * * *", "Every 10 seconds between 08:00 and 17:59"),
        ("*/7 8-9 * * *", "Every 7 minutes from 0 through 56 minutes past the hour between 08:00 and 09:59"),
        ("*/5 */2 * * *", "Every 5 minutes in every 2nd hour from 00:00 to 22:59"),
        ("1,7,9 3,4,5 * * *", "At 1, 7 and 9 minutes past the hour between 03:00 and 05:59"),
        # days of the week
        ("0 9 * * 1-5", "Every weekday at 09:00"),
        ("0 9 * * 0,6", "Every Saturday and Sunday at 09:00"),
        ("0 9 * * MON,WED,FRI", "Every Monday, Wednesday and Friday at 09:00"),
        ("0 9 * * 2-6", "Every day from Tuesday to Saturday at 09:00"),
        ("0 9 * * 1-6", "Every day except Sunday at 09:00"),
        ("0 9 * * 1#2", "On the second Monday of every month at 09:00"),
        ("0 18 * * 5L", "On the last Friday of every month at 18:00"),
        ("*/15 8-17 * * 1-5", "Every 15 minutes from 08:00 through 17:45, every weekday"),
        # days of the month
        ("0 2 15 * *", "On the 15th of every month at 02:00"),
        ("0 2 1,15 * *", "On the 1st and 15th of every month at 02:00"),
        ("0 2 1-7 * *", "On the 1st to 7th of every month at 02:00"),
        ("0 2 */3 * *", "On every 3rd day from the 1st to the 31st of every month at 02:00"),
        ("0 0 L * *", "On the last day of every month at 00:00"),
        ("0 0 L-1 * *", "On the second to last day of every month at 00:00"),
        ("0 0 L-7 * *", "On the 7th day before the last day of every month at 00:00"),
        ("0 0 LW * *", "On the last weekday of every month at 00:00"),
        ("0 0 1W * *", "On the first weekday of every month at 00:00"),
        ("0 0 15W * *", "On the weekday nearest the 15th of every month at 00:00"),
        ("0 9 1,L * *", "On the 1st and the last day of every month at 09:00"),
        ("30 4 1,15 * 5", "On the 1st and 15th of every month, and also every Friday, at 04:30"),
        ("0 0 */2 * 1", "On every 2nd day from the 1st to the 31st of every month, if it is a Monday, at 00:00"),
        # months
        ("0 0 1 1 *", "Every year on 1 January at 00:00"),
        ("0 0 1 1,7 *", "Every year on 1 January and 1 July at 00:00"),
        ("0 0 29 2 *", "Every year on 29 February, where there is one, at 00:00"),
        ("0 9 * 6-8 1-5", "Every weekday in June to August at 09:00"),
        ("0 9 L 3,6 *", "Every year on the last day of March and June at 09:00"),
        ("*/5 * * 12 *", "Every 5 minutes, every day in December"),
        # what the schedule's name decides
        ("H * * * *", "Once an hour, at a minute that the schedule's name decides"),
        ("H H * * *", "Every day at a time that the schedule's name decides"),
        ("H 3 * * *", "Every day between 03:00 and 03:59, at a minute that the schedule's name decides"),
        ("H H(0-7) * * *", "Every day at a time between 00:00 and 07:59 that the schedule's name decides"),
        ("H/15 * * * *", "Every 15 minutes, from a minute that the schedule's name decides"),
        ("H(0-29) * * * *", "Once an hour, at a minute from 0 to 29 that the schedule's name decides"),
        ("0 9 H * *", "On a day of every month that the schedule's name decides at 09:00"),
        ("0 9 * * H", "On a day of the week that the schedule's name decides at 09:00"),
        ("*/15,H * * * *", "Every 15 minutes and at a minute that the schedule's name decides"),
        (
            "5,H 8 * * 1-5",
            "At 5 minutes past the hour and at a minute that the schedule's name decides, between 08:00 and "
            "08:59, every weekday",
        ),
        (
            "H/20,5 * * * *",
            "At 5 minutes past the hour and every 20 minutes from a minute that the schedule's name decides",
        ),
        (
            "H(0-29),H(30-59) * * * *",
            "At a minute from 0 to 29 that the schedule's name decides and at a minute from 30 to 59 "
            "that the schedule's name decides",
        ),
        (
            "H/15 H * * *",
            "Every 15 minutes from a minute that the schedule's name decides, "
            "in an hour that the schedule's name decides",
        ),
        ("*/10 H * * * *", "Every 10 seconds, at a minute that the schedule's name decides"),
        ("H/10 * * * * *", "Every 10 seconds from a second that the schedule's name decides, every minute"),
        ("0 9 H,15 * *", "On the 15th and a day that the schedule's name decides of every month at 09:00"),
        # Vixie cron's rule: 1-31 and 0-6 are no stars, so either field will do
        ("0 9 1-31 * MON", "Every day at 09:00"),
        ("0 9 13 * 0-6", "Every day at 09:00"),
        ("0 9 1-31 * *", "Every day at 09:00"),
        ("0 9 */1 * MON", "Every Monday at 09:00"),
        # years
        ("0 0 9 24 12 * 2026", "On 24 December at 09:00, in 2026"),
        ("0 */5 * * * * 2026,2028", "Every 5 minutes, in 2026 and 2028"),
        ("0 0 9 * * 1-5 2026/2", "Every weekday at 09:00, in every 2nd year from 2026 to 2198"),
        ("0 9 L-3W * *", "On the weekday nearest the fourth to last day of every month at 09:00"),
        # days that some months do not have
        ("0 0 31 * *", "On the 31st of every month, where there is one, at 00:00"),
        ("0 0 31 4,5 *", "Every year on 31 May at 00:00"),
        ("0 0 31 2-5 *", "Every year on 31 March and 31 May at 00:00"),
        ("0 0 30,31 2,4 *", "Every year on the 30th and 31st of February and April, where there is one, at 00:00"),
        ("0 9 * 2 1#5", "Every year on the fifth Monday of February, where there is one, at 09:00"),
        ("0 0 1,31 * 5", "On the 1st and 31st of every month, where there is one, and also every Friday, at 00:00"),
        ("*/5 * 31 * *", "Every 5 minutes, on the 31st of every month, where there is one"),
        ("0 0 L-29 * *", "On the 29th day before the last day of every month, where there is one, at 00:00"),
        ("0 0 30 4,6 *", "Every year on 30 April and 30 June at 00:00"),
        # ranges of H
        ("0 0 H H *", "On a day of a month that the schedule's name decides at 00:00"),
        ("0 0 H 3,H *", "On a day of March and a month that the schedule's name decides at 00:00"),
        ("0 0 * * H(5-7)", "On a day of the week from Friday to Sunday that the schedule's name decides at 00:00"),
        (
            "0 0 H(29-31) 2 *",
            "On a day from the 29th to the 31st of February that the schedule's name decides at 00:00",
        ),
        ("0 0 31 H(2-4) *", "On the 31st of a month from February to April that the schedule's name decides at 00:00"),
        (
            "0 0 15 H(1-6)/2 *",
            "On the 15th of every 2nd month (from January to June) from one that the schedule's name decides at 00:00",
        ),
        # macros
        ("@daily", "Every day at 00:00"),
        ("@weekly", "Every Sunday at 00:00"),
        ("@yearly", "Every year on 1 January at 00:00"),
    ],
)
def test_a_cron_expression_in_words(text: str, sentence: str) -> None:
    assert words(text) == f"{sentence}, UTC."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # intervals
        ("PT15M", "Every 15 minutes of elapsed time"),
        ("PT45M", "Every 45 minutes of elapsed time"),
        ("PT50M", "Every 50 minutes of elapsed time, counted from 1 January 2001 at 00:00 UTC"),
        ("90m/2026-12-01T08:00", "Every 1 hour and 30 minutes, counted from 1 December 2026 at 08:00"),
        ("@every 90s", "Every 1 minute and 30 seconds of elapsed time"),
        ("PT24H/2026-12-01T08:00", "Every 24 hours, counted from 1 December 2026 at 08:00"),
        ("PT36H/2026-12-01T08:00", "Every 36 hours, counted from 1 December 2026 at 08:00"),
        ("P1D/2026-12-01T08:00", "Every day at 08:00"),
        ("P2D/2026-12-01T08:00", "Every other day at 08:00, counted from 1 December 2026"),
        ("P1W/2026-12-01T08:00", "Every Tuesday at 08:00"),
        ("P2W/2026-12-01T08:00", "Every other Tuesday at 08:00, counted from 1 December 2026"),
        ("P3W/2026-12-01T08:00", "Every 3 weeks on Tuesday at 08:00, counted from 1 December 2026"),
        ("P1M/2026-12-05T08:00", "Every month on the 5th at 08:00"),
        ("P1M/2026-12-31T08:00", "Every month on the 31st, or the last day of shorter months, at 08:00"),
        ("P3M/2026-12-05T08:00", "Every 3 months on the 5th at 08:00, counted from 5 December 2026"),
        ("P1Y/2026-12-05T08:00", "Every year on 5 December at 08:00"),
        (
            "P4Y/2028-02-29T08:00",
            "Every 4 years on 29 February, or the last day of shorter months, at 08:00, counted from 2028",
        ),
        # instants
        ("2026-12-24T18:00:00Z", "Once, on 24 December 2026 at 18:00"),
        (
            "2026-12-24T18:00Z, 2026-12-31T23:59:59Z",
            "2 times, on 24 December 2026 at 18:00 and 31 December 2026 at 23:59:59",
        ),
        # rules
        ("RRULE:FREQ=DAILY;BYHOUR=9", "Every day at 09:00"),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9", "Every weekday at 09:00"),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
            "Every other Tuesday at 12:00, counted from 17 November 2026",
        ),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH",
            "Every other week on Tuesday and Thursday at 12:00, counted from 17 November 2026",
        ),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=WEEKLY;INTERVAL=3;BYDAY=TU",
            "Every 3 weeks on Tuesday at 12:00, counted from 17 November 2026",
        ),
        ("DTSTART:20261117T120000 RRULE:FREQ=MONTHLY", "Every month on the 17th at 12:00, from 17 November 2026 on"),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=3",
            "Every month on the last Friday at 12:00, from 17 November 2026 on, 3 times",
        ),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "Every month on every weekday at 12:00 (only the last of these days in each month),"
            " from 17 November 2026 on",
        ),
        (
            "DTSTART:20261117T120000 RRULE:FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1,15;UNTIL=20301231T000000",
            "Every year on the 1st and 15th of March at 12:00, from 17 November 2026 on,"
            " until 31 December 2030 at 00:00",
        ),
        ("RRULE:FREQ=HOURLY;INTERVAL=6", "Every 6 hours"),
        ("RRULE:FREQ=MINUTELY;INTERVAL=15;BYHOUR=8,9,10", "Every 15 minutes in hours 08 to 10"),
        # sets
        ("0 9 * * * | 30 17 * * *", "Every day at 09:00 and 17:30"),
        ("*/15 8-17 * * * | 0 18 * * *", "Every 15 minutes from 08:00 through 18:00"),
        ("0 9 * * 1-5 | 0 11 * * 0", "Every Sunday at 11:00, and every weekday at 09:00"),
        ("0 9 * * * | P1M/2026-12-05T08:00", "Every day at 09:00, and every month on the 5th at 08:00"),
        ("0 9 * * * but not 0 9 1 1 *", "Every day at 09:00, but not every year on 1 January at 09:00"),
        (
            "RRULE:FREQ=DAILY;UNTIL=99991231T235959Z",
            "Every day at 00:00, until 31 December 9999 at 23:59:59",
        ),
        ("RRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=29", "Every second on 29 February, where there is one"),
        (
            "RRULE:FREQ=DAILY;INTERVAL=2;BYMONTHDAY=31",
            "Every other day, only on the 31st, where there is one, at 00:00, counted from 1 January 2001",
        ),
        ("0 9 * * * but not * * * 25 12 *", "Every day at 09:00, but not on 25 December"),
        (
            "0 9 29 2 * but not * * * 29 2 * 2028",
            "Every year on 29 February, where there is one, at 09:00, but not on 29 February 2028",
        ),
        (
            "0 9 * * * but not (* * * 1 * * | * * * * * 5)",
            "Every day at 09:00, but not every Friday and on the 1st of every month",
        ),
        (
            "0 9 * * * but not (* * * 1 * * | 0 9 * * 5)",
            "Every day at 09:00, but not every second, on the 1st of every month, and every Friday at 09:00",
        ),
    ],
)
def test_other_forms_in_words(text: str, sentence: str) -> None:
    assert words(text) == f"{sentence}, UTC."


@pytest.mark.parametrize(
    ("settings", "ending"),
    [
        ("zone=Europe/Berlin", ", Europe/Berlin time."),
        ("not=holidays", ", UTC; never within the calendar holidays."),
        ("only=office", ", UTC; only within the calendar office."),
        ("not=holidays not=office", ", UTC; never within the calendars holidays and office."),
        ("blackout=freeze", ", UTC; whatever falls into the blackout freeze is dropped."),
        ("blackout=freeze:move", ", UTC; whatever falls into the blackout freeze is moved to its end."),
        ("starts=2027-01-01T00:00", ", UTC; from 1 January 2027 at 00:00 on."),
        ("ends=2027-01-01T00:00", ", UTC; until before 1 January 2027 at 00:00."),
        ("starts=2027-01-01T00:00 runs=10", ", UTC; from 1 January 2027 at 00:00 on; at most 10 times."),
        ("starts=2027-01-01T00:00 runs=1", ", UTC; from 1 January 2027 at 00:00 on; once only."),
        ("spread=5m", ", UTC; each delayed by up to 5 minutes, by the schedule's name."),
        ("gap=skip", ", UTC; times that the clock skips do not run."),
        ("gap=shift", ", UTC; times that the clock skips are shifted by the gap."),
        ("gap=run-after", ", UTC; times that the clock skips run right after the gap."),
        ("repeat=both", ", UTC; times that the clock repeats run both times."),
        ("repeat=second", ", UTC; times that the clock repeats run the second time only."),
        ("repeat=first", ", UTC; times that the clock repeats run the first time only."),
    ],
)
def test_zone_exceptions_bounds_and_policies_are_told(settings: str, ending: str) -> None:
    assert words(f"0 9 * * 1-5 {settings}") == f"Every weekday at 09:00{ending}"


def test_instants_are_told_in_the_zone() -> None:
    assert (
        words("2026-12-24T18:00:00Z zone=Asia/Kathmandu") == "Once, on 24 December 2026 at 23:45, Asia/Kathmandu time."
    )


def test_a_schedule_says_its_own_words() -> None:
    assert parse("0 9 * * 1-5").words == "Every weekday at 09:00, UTC."


def test_a_long_list_says_how_many_more_there_are() -> None:
    instants = ", ".join(f"2026-12-{day:02}T18:00:00Z" for day in range(1, 29))

    assert words(instants).endswith("11 December 2026 at 18:00 and 17 more, UTC.")


def test_a_long_union_says_how_many_more_there_are() -> None:
    text = " | ".join(f"0 9 {day} {day % 12 + 1} *" for day in range(1, 21))

    assert words(text).endswith(", and 13 more, UTC.")


SENTENCE_BREAKS = ("  ", " ,", ",,", "None", "[]", "and and", "at at")


def check(schedule: Schedule) -> None:
    sentence = in_words(schedule)

    assert 0 < len(sentence) <= MAX_LENGTH
    assert sentence[0].upper() == sentence[0]
    assert sentence[-1] in ".…"
    assert not [each for each in SENTENCE_BREAKS if each in sentence], sentence


@given(schedules)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_every_schedule_has_a_sentence_of_bounded_length(schedule: Schedule) -> None:
    check(schedule)


MINUTES = st.sampled_from(["*", "0", "*/7", "1,2,3,50", "H", "H/7", "H(0-29)", "H,30"])
HOURS = st.sampled_from(["*", "9", "*/5", "22-3", "8-17", "1,4,5", "H", "H(8-17)", "H/6"])
DAYS = st.sampled_from(["*", "?", "1,15", "*/2", "L,L-9", "LW,3W", "H", "H(1-7)", "1-7,H"])
WEEKDAYS = st.sampled_from(["*", "?", "1-5", "*/2", "5L,1#3", "0,H", "H", "FRI-MON"])


@given(st.tuples(MINUTES, HOURS, DAYS, st.sampled_from(["*", "3", "6-8", "*/5"]), WEEKDAYS))
def test_every_mixture_of_letters_has_a_sentence(fields: tuple[str, ...]) -> None:
    check(Schedule(when=Cron.parse(" ".join(fields))))


RULE_PARTS = st.fixed_dictionaries(
    {"FREQ": st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"])},
    optional={
        "INTERVAL": st.sampled_from(["2", "3"]),
        "BYMONTH": st.sampled_from(["1", "1,2,3,7"]),
        "BYMONTHDAY": st.sampled_from(["1", "-1", "1,15,-2"]),
        "BYDAY": st.sampled_from(["MO", "MO,TU,WE,TH,FR", "1MO", "-1FR,2TU", "SA,SU"]),
        "BYYEARDAY": st.sampled_from(["1", "100,-1"]),
        "BYWEEKNO": st.sampled_from(["1", "20,-1"]),
        "BYHOUR": st.sampled_from(["9", "8,12,18"]),
        "BYMINUTE": st.sampled_from(["0,30", "1,2,3,4,5,6,7,8"]),
        "BYSETPOS": st.sampled_from(["1", "2,-2"]),
        "COUNT": st.just("3"),
    },
)


@given(RULE_PARTS)
def test_every_rule_has_a_sentence(parts: dict[str, str]) -> None:
    try:
        rule = Rule.parse(";".join(f"{key}={value}" for key, value in parts.items()), datetime(2026, 11, 17, 12))  # noqa: DTZ001
    except InvalidSchedule:
        return
    check(Schedule(when=rule))


def test_the_longest_sentence_is_bounded_too() -> None:
    minutes = ",".join(str(minute) for minute in range(60) if minute % 7 not in (0, 2))
    crons = [Cron.parse(f"{minutes} {hour} {day} * 1#1,2#2,3L") for hour in (1, 3, 5) for day in (1, 2, 3, 4)]

    assert len(in_words(Schedule(when=Union(tuple(crons))))) <= MAX_LENGTH
